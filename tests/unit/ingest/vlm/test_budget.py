"""Budgets of a document and of its tenant."""

from __future__ import annotations

from ingest.vlm.budget import Budget


def test_without_limits_everything_is_affordable() -> None:
    assert Budget().spend(10**9).refusal(10**9) is None


def test_a_documents_budget_ends_where_it_is_spent() -> None:
    """Behaviour 3."""
    budget = Budget(document_tokens=1000).spend(400)
    assert budget.refusal(600) is None
    assert budget.refusal(601) == (
        "the document's budget of 1,000 vision tokens has 600 left, and the page needs 601"
    )


def test_a_tenants_budget_counts_its_other_documents() -> None:
    """Behaviour 3."""
    budget = Budget(document_tokens=1000, tenant_tokens=5000, tenant_spent=4500)
    assert budget.refusal(500) is None
    refusal = budget.spend(200).refusal(301)
    assert refusal is not None
    assert refusal.startswith("the tenant's budget of 5,000 vision tokens has 300 left")


def test_a_bill_over_the_limit_leaves_nothing_and_not_less() -> None:
    refusal = Budget(document_tokens=100).spend(900).refusal(1)
    assert refusal is not None
    assert "has 0 left" in refusal

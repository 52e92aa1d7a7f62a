"""Tokens that a document and its tenant may still spend on vision models."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits and what was spent of them. A limit of None is none.

    `tenant_spent` starts with what the tenant has spent on this UTC day. Documents that are read
    at the same time do not see each other, so they may spend over the tenant's limit: by no more
    than what each may spend alone.
    """

    document_tokens: int | None = None
    tenant_tokens: int | None = None
    document_spent: int = 0
    tenant_spent: int = 0

    def spend(self, tokens: int) -> Budget:
        """The budget after a call. What was billed counts, even over a limit."""
        return replace(
            self,
            document_spent=self.document_spent + tokens,
            tenant_spent=self.tenant_spent + tokens,
        )

    def refusal(self, tokens: int) -> str | None:
        """Why `tokens` more cannot be spent, in words; None if they can."""
        limits = (
            ("document", self.document_tokens, self.document_spent),
            ("tenant", self.tenant_tokens, self.tenant_spent),
        )
        for whose, limit, spent in limits:
            if limit is not None and spent + tokens > limit:
                return (
                    f"the {whose}'s budget of {limit:,} vision tokens has {max(0, limit - spent):,}"
                    f" left, and the page needs {tokens:,}"
                )
        return None

-- name: lock_sync --
-- Syncs of one corpus take turns, until the end of the transaction.
select pg_advisory_xact_lock(hashtextextended(%(corpus)s, hashtextextended(%(tenant)s, 1)))

-- name: differences --
-- Listed files that are new or may have changed, and documents below whole folders that are gone.
select l.source as listed, k.id, k.source, k.status, k.size_bytes, k.mtime_ns, k.sha256,
    k.parser_hash, k.generation, k.stored_generation, k.attempts, k.version
from unnest(
    %(sources)s::text[], %(sizes)s::int8[], %(mtimes)s::int8[], %(sha256s)s::text[],
    %(versions)s::text[]
) as l(source, size_bytes, mtime_ns, sha256, version)
full join (
    select * from ragplane.ledger_documents where tenant = %(tenant)s and corpus = %(corpus)s
) as k on k.source = l.source
where k.id is null
    or (
        l.source is null
        and k.status <> 'tombstone'
        and exists (
            select from unnest(%(folders)s::text[]) as f(folder)
            where starts_with(k.source, regexp_replace(f.folder, '/$', '') || '/')
        )
    )
    or (
        l.source is not null
        and (
            k.status = 'tombstone'
            or k.size_bytes <> l.size_bytes
            or k.version is distinct from l.version
            or (l.version is null and (k.mtime_ns = l.mtime_ns) is not true)
            or k.sha256 <> l.sha256
            or k.parser_hash <> %(parser_hash)s::text
        )
    )

-- name: taken_ids --
-- Which of these ids some document has.
select id from ragplane.ledger_documents where id = any(%(ids)s)

-- name: insert_documents --
-- Queue new documents, in the order given.
insert into ragplane.ledger_documents (
    id, tenant, corpus, source, size_bytes, mtime_ns, sha256, version, parser_hash
)
select n.id, %(tenant)s, %(corpus)s, n.source, n.size_bytes, n.mtime_ns, n.sha256, n.version,
    %(parser_hash)s
from unnest(
    %(ids)s::uuid[], %(sources)s::text[], %(sizes)s::int8[], %(mtimes)s::int8[],
    %(sha256s)s::text[], %(versions)s::text[]
) as n(id, source, size_bytes, mtime_ns, sha256, version)

-- name: update_documents --
-- Write what is known of files now. A lease stays: its holder may be writing to the store.
update ragplane.ledger_documents as d set
    source = n.source,
    size_bytes = n.size_bytes,
    mtime_ns = n.mtime_ns,
    sha256 = n.sha256,
    version = n.version,
    parser_hash = %(parser_hash)s,
    generation = n.generation,
    status = case when n.requeue then 'pending' else d.status end,
    attempts = case when n.requeue then 0 else d.attempts end,
    queued_at = case when n.requeue then clock_timestamp() else d.queued_at end,
    stage = case when n.requeue then null else d.stage end,
    error = case when n.requeue then null else d.error end
from unnest(
    %(ids)s::uuid[], %(sources)s::text[], %(sizes)s::int8[], %(mtimes)s::int8[],
    %(sha256s)s::text[], %(versions)s::text[], %(generations)s::int4[], %(requeues)s::bool[]
) as n(id, source, size_bytes, mtime_ns, sha256, version, generation, requeue)
where d.id = n.id

-- name: insert_moves --
-- Tell the store the new sources of documents.
insert into ragplane.ledger_moves (document_id, tenant, corpus, source)
select n.id, %(tenant)s, %(corpus)s, n.source
from unnest(%(ids)s::uuid[], %(sources)s::text[]) as n(id, source)

-- name: bury --
-- Have documents deleted, by id.
update ragplane.ledger_documents
set status = 'tombstone', attempts = 0, queued_at = clock_timestamp()
where id = any(%(ids)s)

-- name: bury_sources --
-- Have documents deleted, by source.
update ragplane.ledger_documents
set status = 'tombstone', attempts = 0, queued_at = clock_timestamp()
where tenant = %(tenant)s and corpus = %(corpus)s and source = any(%(sources)s)
    and status <> 'tombstone'
returning id

-- name: retry --
-- Queue what failed, whole or in part.
update ragplane.ledger_documents
set status = 'pending', attempts = 0, stage = null, error = null, queued_at = clock_timestamp()
where tenant = %(tenant)s and corpus = %(corpus)s and status in ('failed', 'partial')
returning id

-- name: requeue --
-- Queue documents whose points are wrong.
update ragplane.ledger_documents
set status = 'pending', attempts = 0, stage = null, error = null, queued_at = clock_timestamp()
where tenant = %(tenant)s and corpus = %(corpus)s and id = any(%(ids)s)
    and status in ('done', 'partial', 'failed')
returning id

-- name: holders --
-- Who holds leases.
select distinct lease_owner as holder from ragplane.ledger_documents
where tenant = %(tenant)s and corpus = %(corpus)s and lease_owner is not null

-- name: expire --
-- End the leases of workers that are dead.
update ragplane.ledger_documents set lease_until = clock_timestamp()
where tenant = %(tenant)s and corpus = %(corpus)s and lease_owner = any(%(holders)s)
    and lease_until > clock_timestamp()
returning id

-- name: give_up --
-- Fail documents that took their workers down as often as is allowed.
update ragplane.ledger_documents
set status = 'failed', stage = 'parse', error = 'its worker died ' || attempts || ' times',
    failed_at = clock_timestamp(), lease_owner = null, lease_until = null
where id in (
    select id
    from ragplane.ledger_documents
    where tenant = %(tenant)s and corpus = %(corpus)s and status in ('claimed', 'parsed')
        and lease_owner is not null and lease_until <= clock_timestamp()
        and attempts >= %(max_attempts)s
    for update skip locked
)

-- name: claim --
-- Lease the documents that have waited longest and that nobody holds.
with chosen as (
    select id
    from ragplane.ledger_documents d
    where tenant = %(tenant)s and corpus = %(corpus)s
        and status in ('pending', 'claimed', 'parsed', 'tombstone')
        and (lease_until is null or lease_until <= clock_timestamp())
        -- What the store has yet to take must not come after the deletion.
        and not (
            status = 'tombstone'
            and exists (select from ragplane.ledger_moves w where w.document_id = d.id)
        )
        -- A new document may stand where one stood that has yet to be moved there.
        and not (
            stored_generation = 0
            and exists (
                select from ragplane.ledger_moves w
                where w.tenant = d.tenant and w.corpus = d.corpus and w.document_id <> d.id
            )
        )
        and (status = 'tombstone' or not %(tombstones_only)s)
    order by queued_at, id
    limit %(limit)s
    for update skip locked
),
claimed as (
    update ragplane.ledger_documents as d set
        status = case when d.status = 'tombstone' then d.status else 'claimed' end,
        attempts = d.attempts + 1,
        token = d.token + 1,
        parser_hash = coalesce(%(parser_hash)s::text, d.parser_hash),
        lease_owner = %(worker)s,
        lease_until = clock_timestamp() + %(lease_s)s * interval '1 second'
    from chosen
    where d.id = chosen.id
    returning d.id as document_id, d.source, d.sha256, d.parser_hash, d.generation,
        d.stored_generation, d.attempts, d.token, d.status = 'tombstone' as tombstone, d.queued_at
)
select document_id, source, sha256, parser_hash, generation, stored_generation, attempts, token,
    tombstone
from claimed
order by queued_at, document_id

-- name: hold --
-- Lock the document if the claim still stands and still is about the same content.
select id from ragplane.ledger_documents
where id = %(document_id)s and token = %(token)s and generation = %(generation)s
    and source = %(source)s and (status = 'tombstone') = %(tombstone)s
for update

-- name: renew --
-- Hold a document longer.
update ragplane.ledger_documents
set lease_until = clock_timestamp() + %(lease_s)s * interval '1 second'
where id = %(document_id)s

-- name: release --
-- Give a document back as it is.
update ragplane.ledger_documents
set status = case when status = 'claimed' then 'pending' else status end,
    attempts = greatest(attempts - 1, 0), lease_owner = null, lease_until = null
where id = %(document_id)s and token = %(token)s

-- name: finished_pages --
-- Checkpoints of the pages of one content under one configuration.
select number, payload from ragplane.ledger_pages
where document_id = %(document_id)s and sha256 = %(sha256)s and parser_hash = %(parser_hash)s
    and error is null and payload is not null

-- name: write_page --
-- Write a page; a checkpoint of the same content and configuration stays.
insert into ragplane.ledger_pages as p (
    document_id, number, sha256, parser_hash, route, reason, signals, seconds, vlm_tokens,
    confidence, stage, error, payload
)
values (
    %(document_id)s, %(number)s, %(sha256)s, %(parser_hash)s, %(route)s, %(reason)s, %(signals)s,
    %(seconds)s, %(vlm_tokens)s, %(confidence)s, %(stage)s, %(error)s, %(payload)s
)
on conflict (document_id, number) do update set
    sha256 = excluded.sha256,
    parser_hash = excluded.parser_hash,
    route = excluded.route,
    reason = excluded.reason,
    signals = excluded.signals,
    seconds = excluded.seconds,
    vlm_tokens = excluded.vlm_tokens,
    confidence = excluded.confidence,
    stage = excluded.stage,
    error = excluded.error,
    finished_at = excluded.finished_at,
    payload = case
        when (p.sha256, p.parser_hash) = (excluded.sha256, excluded.parser_hash)
        then coalesce(excluded.payload, p.payload)
        else excluded.payload
    end

-- name: drop_other_pages --
-- Remove pages that the document does not have any more.
delete from ragplane.ledger_pages where document_id = %(document_id)s and number <> all(%(numbers)s)

-- name: fresh_vision --
-- Vision tokens of pages that have no checkpoint of this content and configuration.
select coalesce(sum(n.tokens), 0)::int8 as tokens
from unnest(%(numbers)s::int4[], %(tokens)s::int8[]) as n(number, tokens)
where not exists (
    select from ragplane.ledger_pages p
    where p.document_id = %(document_id)s and p.number = n.number and p.payload is not null
        and p.sha256 = %(sha256)s and p.parser_hash = %(parser_hash)s
)

-- name: spend_vision --
-- Count vision tokens against the tenant's day.
insert into ragplane.ledger_vision as v (tenant, day, tokens)
values (%(tenant)s, (clock_timestamp() at time zone 'utc')::date, %(tokens)s)
on conflict (tenant, day) do update set tokens = v.tokens + excluded.tokens

-- name: vision --
-- Vision tokens that a tenant has spent today.
select tokens from ragplane.ledger_vision
where tenant = %(tenant)s and day = (clock_timestamp() at time zone 'utc')::date

-- name: finish_parsing --
-- Note that the document only lacks its vectors.
update ragplane.ledger_documents set status = 'parsed' where id = %(document_id)s

-- name: finish_document --
-- Flip to the generation that was written, and end the claim.
update ragplane.ledger_documents
set status = %(status)s, sha256 = %(sha256)s, stored_generation = generation,
    chunk_ids = %(chunk_ids)s, chunk_sha256s = %(chunk_sha256s)s,
    attempts = 0, lease_owner = null, lease_until = null, stage = null, error = null
where id = %(document_id)s

-- name: drop_tombstone --
-- Remove a deleted document's row under its claim, unless it was listed again.
delete from ragplane.ledger_documents
where id = %(document_id)s and token = %(token)s and status = 'tombstone'
returning id

-- name: fail --
-- Note what went wrong, and end the claim.
update ragplane.ledger_documents
set status = 'failed', stage = %(stage)s, error = %(error)s, failed_at = clock_timestamp(),
    lease_owner = null, lease_until = null
where id = %(document_id)s

-- name: corpora --
-- The corpora of a tenant, by name as Python orders them.
select corpus from (
    select corpus from ragplane.ledger_documents where tenant = %(tenant)s
    union
    select corpus from ragplane.ledger_runs where tenant = %(tenant)s
) as known
order by corpus collate "C"

-- name: documents --
-- Every document of a corpus.
select id, source, status, size_bytes, mtime_ns, sha256, parser_hash, generation,
    stored_generation, attempts, version
from ragplane.ledger_documents
where tenant = %(tenant)s and corpus = %(corpus)s

-- name: manifest --
-- Every point that the store should hold for a corpus.
select p.id, d.id as document_id, d.stored_generation as generation, p.text_sha256
from ragplane.ledger_documents d
cross join unnest(d.chunk_ids, d.chunk_sha256s) as p(id, text_sha256)
where d.tenant = %(tenant)s and d.corpus = %(corpus)s and d.status <> 'tombstone'

-- name: waiting --
-- How many documents could be claimed now, by corpus.
select tenant, corpus, count(*) as documents
from ragplane.ledger_documents d
where status in ('pending', 'claimed', 'parsed', 'tombstone')
    and (lease_until is null or lease_until <= clock_timestamp())
    and not (
        status = 'tombstone'
        and exists (select from ragplane.ledger_moves w where w.document_id = d.id)
    )
group by tenant, corpus
order by tenant, corpus

-- name: status --
-- Counts of a corpus: documents by status, failures by stage, pages by route, pending moves.
with d as (
    select id, status, stage, error
    from ragplane.ledger_documents
    where tenant = %(tenant)s and corpus = %(corpus)s
),
p as (
    select p.route, p.stage, p.error from ragplane.ledger_pages p join d on d.id = p.document_id
)
select 'documents' as what, status as name, count(*) as amount from d group by status
union all
select 'stages', stage, count(*)
from (
    select stage from d where status = 'failed'
    union all
    select stage from p where error is not null
) as failures
group by stage
union all
select 'pages', route, count(*) from p group by route
union all
select 'writes', 'waiting', count(*)
from ragplane.ledger_moves
where tenant = %(tenant)s and corpus = %(corpus)s

-- name: errors --
-- The last errors of documents and pages of a corpus, newest first.
select d.source, null::integer as page, d.stage, d.error as cause, d.failed_at as at
from ragplane.ledger_documents d
where d.tenant = %(tenant)s and d.corpus = %(corpus)s and d.error is not null
union all
select d.source, p.number, p.stage, p.error, p.finished_at
from ragplane.ledger_pages p
join ragplane.ledger_documents d on d.id = p.document_id
where d.tenant = %(tenant)s and d.corpus = %(corpus)s and p.error is not null
order by at desc, source, page
limit %(limit)s

-- name: triage --
-- Pages of a corpus after a given one, in order.
select d.source, p.document_id, p.number, p.route, p.reason, p.signals, p.seconds, p.vlm_tokens,
    p.confidence, p.stage, p.error
from ragplane.ledger_pages p
join ragplane.ledger_documents d on d.id = p.document_id
where d.tenant = %(tenant)s and d.corpus = %(corpus)s
    and (p.document_id, p.number) > (%(document_id)s, %(number)s)
order by p.document_id, p.number
limit %(limit)s

-- name: insert_run --
-- Note that a run begins.
insert into ragplane.ledger_runs (id, tenant, corpus) values (%(id)s, %(tenant)s, %(corpus)s)

-- name: end_run --
-- Note how a run ended.
update ragplane.ledger_runs
set ended_at = clock_timestamp(), status = %(status)s, totals = %(totals)s
where id = %(id)s

-- name: runs --
-- The last runs over a corpus, newest first.
select id, started_at, ended_at, status, totals
from ragplane.ledger_runs
where tenant = %(tenant)s and corpus = %(corpus)s
order by started_at desc
limit %(limit)s

-- name: lock_moves --
-- Relays of one corpus take turns, until the end of the transaction.
select pg_advisory_xact_lock(hashtextextended(%(corpus)s, hashtextextended(%(tenant)s, 3)))

-- name: take_moves --
-- Lease the oldest moves of a corpus, unless another worker holds some of it.
with chosen as (
    select id
    from ragplane.ledger_moves
    where tenant = %(tenant)s and corpus = %(corpus)s
        and not exists (
            select from ragplane.ledger_moves held
            where held.tenant = %(tenant)s and held.corpus = %(corpus)s
                and held.lease_owner <> %(worker)s and held.lease_until > clock_timestamp()
        )
    order by id
    limit %(limit)s
),
taken as (
    update ragplane.ledger_moves as w
    set lease_owner = %(worker)s,
        lease_until = clock_timestamp() + %(lease_s)s * interval '1 second'
    from chosen
    where w.id = chosen.id
    returning w.id, w.document_id, w.source
)
select * from taken order by id

-- name: drop_moves --
-- Remove moves that the store has taken.
delete from ragplane.ledger_moves
where tenant = %(tenant)s and corpus = %(corpus)s and id = any(%(ids)s)

-- name: vectors --
-- Cached vectors of texts.
select sha256, vector from ragplane.ledger_vectors
where fingerprint = %(fingerprint)s and sha256 = any(%(sha256s)s)

-- name: put_vectors --
-- Cache vectors.
insert into ragplane.ledger_vectors (fingerprint, sha256, vector)
select %(fingerprint)s, n.sha256, n.vector
from unnest(%(sha256s)s::text[], %(vectors)s::bytea[]) as n(sha256, vector)
on conflict do nothing

-- name: prune_vectors --
-- Drop the oldest cached vectors beyond a number.
delete from ragplane.ledger_vectors
where (fingerprint, sha256) in (
    select fingerprint, sha256
    from ragplane.ledger_vectors
    order by put_at desc, fingerprint, sha256
    offset %(keep)s
)
returning sha256

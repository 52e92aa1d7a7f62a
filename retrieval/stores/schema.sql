-- The steps that bring a database forward. Step N leads from version N-1 to version N; a database
-- runs the steps that it has not, in one transaction under an advisory lock. A step that was
-- released is never changed: what must change is a new step at the end.

-- name: store --
-- Corpora with documents, pages, chunks, vectors, postings.

create extension if not exists vector;

create table if not exists ragplane.corpora (
    id bigint generated always as identity primary key,
    tenant text not null,
    name text not null,
    fingerprint text not null,
    dimensions integer not null,
    -- Kept by every write, so that BM25 has N and the mean length from one row.
    chunk_count bigint not null default 0,
    term_total bigint not null default 0,
    unique (tenant, name)
);

create table if not exists ragplane.documents (
    id uuid primary key,
    corpus_id bigint not null references ragplane.corpora on delete cascade,
    source text not null,
    sha256 text not null,
    mime text not null,
    title text not null,
    generation integer not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    unique (corpus_id, source)
);

create table if not exists ragplane.pages (
    document_id uuid not null references ragplane.documents on delete cascade,
    number integer not null,
    width_points double precision not null,
    height_points double precision not null,
    rotation integer not null,
    route text not null,
    reason text not null,
    signals jsonb not null,
    text text not null,
    blocks jsonb not null,
    seconds double precision not null,
    primary key (document_id, number)
);

create table if not exists ragplane.chunks (
    id uuid primary key,
    corpus_id bigint not null references ragplane.corpora on delete cascade,
    document_id uuid not null references ragplane.documents on delete cascade,
    ordinal integer not null,
    text text not null,
    prefix text not null,
    heading_path text[] not null,
    first_page integer not null,
    last_page integer not null,
    start_offset integer not null,
    end_offset integer not null,
    tokens integer not null,
    sha256 text not null,
    -- Corpora of several dimensions share the table; each dimension has its own partial index.
    dimensions integer not null,
    embedding halfvec not null,
    term_count integer not null,
    unique (document_id, ordinal)
);

create index if not exists chunks_corpus on ragplane.chunks (corpus_id);

create table if not exists ragplane.postings (
    corpus_id bigint not null,
    term text collate "C" not null,
    chunk_id uuid not null references ragplane.chunks on delete cascade,
    tf integer not null,
    -- The chunk's term_count again: scoring then reads this table's index and nothing else.
    length integer not null,
    primary key (corpus_id, term, chunk_id) include (tf, length)
);

create index if not exists postings_chunk on ragplane.postings (chunk_id);

-- name: page_outcomes --
-- What reading a page came to, and where on the page a chunk stands.
alter table ragplane.pages
    add column confidence double precision,
    add column vlm_tokens integer not null default 0,
    add column notes jsonb not null default '[]',
    add column error jsonb;

alter table ragplane.chunks add column boxes jsonb not null default '[]';

-- name: ledger --
-- The state of ingestion: documents, pages, pending writes, cached vectors, runs.
create table ragplane.ledger_documents (
    id uuid primary key,
    tenant text not null,
    corpus text not null,
    source text not null,
    status text not null default 'pending',
    size_bytes bigint not null,
    mtime_ns bigint,
    sha256 text,
    parser_hash text not null,
    generation integer not null default 1,
    stored_generation integer not null default 0,
    attempts integer not null default 0,
    -- Grows with every claim and every change of the content; commits name the one they hold.
    token bigint not null default 0,
    lease_owner text,
    lease_until timestamptz,
    stage text,
    error text,
    failed_at timestamptz,
    queued_at timestamptz not null default clock_timestamp(),
    -- The points of the stored generation.
    chunk_ids uuid[] not null default '{}',
    chunk_sha256s text[] not null default '{}'
);

-- A source may be longer than an index entry.
create unique index ledger_documents_source
on ragplane.ledger_documents (tenant, corpus, md5(source));

create index ledger_documents_queue on ragplane.ledger_documents (tenant, corpus, queued_at, id)
where status in ('pending', 'claimed', 'parsed', 'tombstone');

-- Few rows have a holder, so looking for dead ones does not read the whole queue.
create index ledger_documents_leases on ragplane.ledger_documents (tenant, corpus, lease_until)
where lease_owner is not null;

create table ragplane.ledger_pages (
    document_id uuid not null references ragplane.ledger_documents on delete cascade,
    number integer not null,
    sha256 text not null,
    parser_hash text not null,
    route text not null,
    reason text not null,
    signals jsonb not null,
    seconds double precision not null,
    vlm_tokens integer not null,
    confidence double precision,
    stage text,
    error text,
    finished_at timestamptz not null default clock_timestamp(),
    -- A checkpoint (ingest.ledger.codec); null for a page of a format without pages.
    payload bytea,
    primary key (document_id, number)
);

create table ragplane.ledger_writes (
    id bigint generated always as identity primary key,
    document_id uuid not null,
    tenant text not null,
    corpus text not null,
    generation integer not null,
    kind text not null,
    payload bytea not null,
    lease_owner text,
    lease_until timestamptz
);

create index ledger_writes_corpus on ragplane.ledger_writes (tenant, corpus, id);

create index ledger_writes_document on ragplane.ledger_writes (document_id);

create table ragplane.ledger_vectors (
    fingerprint text not null,
    sha256 text not null,
    vector bytea not null,
    put_at timestamptz not null default clock_timestamp(),
    primary key (fingerprint, sha256)
);

create index ledger_vectors_age on ragplane.ledger_vectors (put_at);

create table ragplane.ledger_runs (
    id uuid primary key,
    tenant text not null,
    corpus text not null,
    started_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    status text,
    totals jsonb not null default '{}'
);

create index ledger_runs_corpus on ragplane.ledger_runs (tenant, corpus, started_at desc);

-- name: second_vectors --
-- A second set of vectors beside those in use: of the next model, or of the one before.
alter table ragplane.corpora
    add column second_fingerprint text,
    add column second_dimensions integer;

create table ragplane.second_vectors (
    chunk_id uuid primary key references ragplane.chunks on delete cascade,
    embedding halfvec not null
);

-- name: object_versions --
-- What an object store says of an object's content (its ETag), in place of a time.
alter table ragplane.ledger_documents add column version text;

-- name: vision --
-- Vision tokens that tenants spent, by UTC day.
create table ragplane.ledger_vision (
    tenant text not null,
    day date not null,
    tokens bigint not null,
    primary key (tenant, day)
);

-- name: moves --
-- The outbox holds new sources of documents and nothing else.
alter table ragplane.ledger_writes rename to ledger_moves;

alter table ragplane.ledger_moves drop column kind, drop column generation;

alter table ragplane.ledger_moves alter column payload type text using convert_from(payload, 'UTF8');

alter table ragplane.ledger_moves rename column payload to source;

-- name: vectors --
-- Vectors apart from their chunks, so that a corpus changes its model by one row of `corpora`.
alter table ragplane.corpora add column slot smallint not null default 0;

create table ragplane.vectors (
    chunk_id uuid not null references ragplane.chunks on delete cascade,
    -- The set in use, of the corpus's slot, or the second one: of the next model or of the last.
    slot smallint not null,
    corpus_id bigint not null,
    -- Corpora of several dimensions share the table; each dimension has its own partial index.
    dimensions integer not null,
    embedding halfvec not null,
    primary key (chunk_id, slot)
);

insert into ragplane.vectors (chunk_id, slot, corpus_id, dimensions, embedding)
select id, 0, corpus_id, dimensions, embedding from ragplane.chunks
union all
select v.chunk_id, 1, h.corpus_id, c.second_dimensions, v.embedding
from ragplane.second_vectors v
join ragplane.chunks h on h.id = v.chunk_id
join ragplane.corpora c on c.id = h.corpus_id
where c.second_dimensions is not null;

create index vectors_corpus on ragplane.vectors (corpus_id, slot);

do $$
declare
    length integer;
begin
    foreach length in array array(
        select dimensions from ragplane.corpora
        union
        select second_dimensions from ragplane.corpora where second_dimensions is not null
    ) loop
        execute format(
            'create index vectors_embedding_%1$s on ragplane.vectors using hnsw '
            '((embedding::halfvec(%1$s)) halfvec_cosine_ops) where dimensions = %1$s',
            length
        );
    end loop;
end
$$;

drop table ragplane.second_vectors;

alter table ragplane.chunks drop column embedding, drop column dimensions;

-- name: long_sources --
-- A source may be longer than an index entry.
alter table ragplane.documents drop constraint documents_corpus_id_source_key;

create unique index documents_source on ragplane.documents (corpus_id, md5(source));

-- Version 1. Runs whole under an advisory lock, and may run again.

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

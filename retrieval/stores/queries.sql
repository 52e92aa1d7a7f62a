-- name: lock_schema --
-- Let one process at a time change the schema; released at the end of the transaction.
select pg_advisory_xact_lock(hashtextextended('ragplane.schema', 0))

-- name: has_version --
-- Whether a schema is there at all: creating one, even a present one, takes rights.
select to_regclass('ragplane.schema_version') is not null as present

-- name: create_version --
-- The schema that holds everything, and the table that holds its version.
create schema if not exists ragplane;
create table ragplane.schema_version (version integer not null)

-- name: version --
-- The version of the schema in this database; no row before the first start.
select version from ragplane.schema_version

-- name: set_version --
-- Write the version once the schema is applied.
with gone as (delete from ragplane.schema_version)
insert into ragplane.schema_version (version) values (%(version)s)

-- name: vector_version --
-- The version of pgvector in this database.
select extversion from pg_extension where extname = 'vector'

-- name: insert_corpus --
-- Create the corpus if it is new.
insert into ragplane.corpora (tenant, name, fingerprint, dimensions)
values (%(tenant)s, %(corpus)s, %(fingerprint)s, %(dimensions)s)
on conflict (tenant, name) do nothing

-- name: corpus --
-- The corpus of a key; no row if there is none.
select id, fingerprint, dimensions, slot, chunk_count, term_total, second_fingerprint,
    second_dimensions
from ragplane.corpora
where tenant = %(tenant)s and name = %(corpus)s

-- name: lock_writes --
-- Write beside other writers of a corpus, until the end of the transaction.
select pg_advisory_xact_lock_shared(
    hashtextextended(%(corpus)s, hashtextextended(%(tenant)s, 2))
)

-- name: lock_model --
-- Keep writers of a corpus out, until the end of the transaction.
select pg_advisory_xact_lock(hashtextextended(%(corpus)s, hashtextextended(%(tenant)s, 2)))

-- name: has_embedding_index --
-- Whether this vector length has its index: creating one, even a present one, locks out writers.
select to_regclass('ragplane.vectors_embedding_{dimensions}') is not null as present

-- name: create_embedding_index --
-- One HNSW index per vector length, shared by the corpora of that length.
create index vectors_embedding_{dimensions} on ragplane.vectors
using hnsw ((embedding::halfvec({dimensions})) halfvec_cosine_ops)
where dimensions = {dimensions}

-- name: documents --
-- Every document of a corpus.
select d.id, d.source, d.sha256, d.mime, d.title, d.generation
from ragplane.documents d
join ragplane.corpora c on c.id = d.corpus_id
where c.tenant = %(tenant)s and c.name = %(corpus)s

-- name: lock_source --
-- Writers of one source take turns, until the end of the transaction.
select pg_advisory_xact_lock(hashtextextended(%(source)s, %(corpus_id)s))

-- name: namesakes --
-- Documents that hold this source under another id.
select id from ragplane.documents
where corpus_id = %(corpus_id)s and md5(source) = md5(%(source)s) and source = %(source)s
    and id <> %(id)s

-- name: upsert_document --
-- Put the document's row in place and lock it; no row if another corpus has the id.
insert into ragplane.documents as d (id, corpus_id, source, sha256, mime, title, generation)
values (%(id)s, %(corpus_id)s, %(source)s, %(sha256)s, %(mime)s, %(title)s, %(generation)s)
on conflict (id) do update set
    source = excluded.source,
    sha256 = excluded.sha256,
    mime = excluded.mime,
    title = excluded.title,
    generation = excluded.generation,
    updated_at = case
        when (d.source, d.sha256, d.mime, d.title, d.generation) is distinct from
            (excluded.source, excluded.sha256, excluded.mime, excluded.title, excluded.generation)
        then now()
        else d.updated_at
    end
where d.corpus_id = excluded.corpus_id
returning id

-- name: lock_document --
-- Lock the document's row, if the corpus has it.
select d.id, d.corpus_id
from ragplane.documents d
join ragplane.corpora c on c.id = d.corpus_id
where d.id = %(id)s and c.tenant = %(tenant)s and c.name = %(corpus)s
for update of d

-- name: delete_pages --
-- Remove the pages of a document.
delete from ragplane.pages where document_id = %(id)s

-- name: delete_chunks --
-- Remove the chunks of a document with their postings; how many chunks and terms went.
with gone as (
    delete from ragplane.chunks where document_id = %(id)s returning term_count
)
select count(*) as chunks, coalesce(sum(term_count), 0) as terms from gone

-- name: lock_owners --
-- Lock, in order, the documents of a corpus that own any of these chunks, and say which they are.
select d.id, d.corpus_id
from ragplane.documents d
join ragplane.corpora c on c.id = d.corpus_id
where c.tenant = %(tenant)s and c.name = %(corpus)s
    and d.id in (select h.document_id from ragplane.chunks h where h.id = any(%(ids)s))
order by d.id
for update of d

-- name: delete_points --
-- Remove chunks of a corpus by id, with their postings; how many chunks and terms went.
with gone as (
    delete from ragplane.chunks
    where corpus_id = %(corpus_id)s and id = any(%(ids)s)
    returning term_count
)
select count(*) as chunks, coalesce(sum(term_count), 0) as terms from gone

-- name: move_document --
-- Give a document another source.
update ragplane.documents set source = %(source)s, updated_at = now() where id = %(id)s

-- name: points --
-- What the store holds of each chunk of a corpus, for comparison with a manifest.
select h.id, h.document_id, d.generation, h.sha256 as text_sha256
from ragplane.chunks h
join ragplane.documents d on d.id = h.document_id
join ragplane.corpora c on c.id = h.corpus_id
where c.tenant = %(tenant)s and c.name = %(corpus)s

-- name: delete_document --
-- Remove a document's row.
delete from ragplane.documents where id = %(id)s

-- name: copy_pages --
-- Write pages.
copy ragplane.pages (
    document_id, number, width_points, height_points, rotation, route, reason, signals, text,
    blocks, seconds, confidence, vlm_tokens, notes, error
) from stdin (format binary)

-- name: copy_chunks --
-- Write chunks.
copy ragplane.chunks (
    id, corpus_id, document_id, ordinal, text, prefix, heading_path, first_page, last_page,
    start_offset, end_offset, tokens, sha256, term_count, boxes
) from stdin (format binary)

-- name: copy_vectors --
-- Write vectors of chunks.
copy ragplane.vectors (chunk_id, slot, corpus_id, dimensions, embedding) from stdin (format binary)

-- name: copy_postings --
-- Write postings.
copy ragplane.postings (corpus_id, term, chunk_id, tf, length) from stdin (format binary)

-- name: count --
-- Keep the corpus's totals. Last in its transaction: it holds up the corpus's other writers.
update ragplane.corpora
set chunk_count = chunk_count + %(chunks)s, term_total = term_total + %(terms)s
where id = %(corpus_id)s

-- name: snapshot --
-- Let the statements of this transaction agree, whatever is committed meanwhile. Comes first.
set transaction isolation level repeatable read, read only

-- name: configure_index_scan --
-- Read on past the first candidates, in order, until the filter has let enough through.
select
    set_config('hnsw.iterative_scan', 'strict_order', true),
    set_config('hnsw.ef_search', %(ef_search)s, true),
    set_config('hnsw.max_scan_tuples', %(max_scan_tuples)s, true)

-- name: dense --
-- The nearest chunks through the HNSW index.
select chunk_id as id, 1 - (embedding::halfvec({dimensions}) <=> %(vector)s) as score
from ragplane.vectors
where corpus_id = %(corpus_id)s and slot = %(slot)s and dimensions = {dimensions}
order by embedding::halfvec({dimensions}) <=> %(vector)s, chunk_id
limit %(limit)s

-- name: dense_exact --
-- The nearest chunks by measuring every one; the materialised step keeps the HNSW index out.
with measured as materialized (
    select chunk_id as id, embedding <=> %(vector)s as distance
    from ragplane.vectors
    where corpus_id = %(corpus_id)s and slot = %(slot)s
)
select id, 1 - distance as score from measured order by distance, id limit %(limit)s

-- name: term_counts --
-- For each term that occurs: in how many chunks up to a cap, and the last chunk id looked at.
select q.term, seen.position as containing, seen.chunk_id as last_chunk_id
from unnest(%(terms)s::text[]) as q(term)
cross join lateral (
    select position, chunk_id
    from (
        select row_number() over (order by p.chunk_id) as position, p.chunk_id
        from ragplane.postings p
        where p.corpus_id = %(corpus_id)s and p.term = q.term
        order by p.chunk_id
        limit %(cap)s
    ) as first_ones
    order by position desc
    limit 1
) as seen

-- name: lexical --
-- BM25: candidates from the postings of the driving (rare) terms, the best of them scored on the rest.
with driven as (
    select p.chunk_id,
        q.weight * p.tf * (%(k1)s + 1)
            / (p.tf + %(k1)s * (1 - %(b)s + %(b)s * p.length / %(mean_length)s)) as score
    from unnest(
        %(driving_terms)s::text[], %(driving_weights)s::float8[], %(driving_postings)s::int8[]
    ) as q(term, weight, postings)
    cross join lateral (
        select chunk_id, tf, length
        from ragplane.postings
        where corpus_id = %(corpus_id)s and term = q.term
        order by chunk_id
        limit q.postings
    ) as p
),
candidates as (
    select chunk_id, sum(score) as score
    from driven
    group by chunk_id
    order by score desc, chunk_id
    limit %(rescored)s
),
rest as (
    select c.chunk_id,
        sum(
            q.weight * p.tf * (%(k1)s + 1)
                / (p.tf + %(k1)s * (1 - %(b)s + %(b)s * p.length / %(mean_length)s))
        ) as score
    from candidates c
    cross join unnest(%(rest_terms)s::text[], %(rest_weights)s::float8[]) as q(term, weight)
    cross join lateral (
        select tf, length
        from ragplane.postings
        where corpus_id = %(corpus_id)s and term = q.term and chunk_id = c.chunk_id
        limit 1
    ) as p
    group by c.chunk_id
)
-- Rounded, so that equal texts have equal scores whatever order their terms were added in.
select c.chunk_id as id, round((c.score + coalesce(r.score, 0))::numeric, 9)::float8 as score
from candidates c
left join rest r using (chunk_id)
order by score desc, c.chunk_id
limit %(limit)s

-- name: chunks --
-- Chunks by id, with their documents.
select h.id, h.document_id, h.ordinal, h.text, h.prefix, h.heading_path, h.first_page, h.last_page,
    h.start_offset, h.end_offset, h.tokens, h.sha256, h.boxes,
    d.source, d.sha256 as document_sha256, d.mime, d.title, d.generation
from ragplane.chunks h
join ragplane.documents d on d.id = h.document_id
join ragplane.corpora c on c.id = h.corpus_id
where c.tenant = %(tenant)s and c.name = %(corpus)s and h.id = any(%(ids)s)

-- name: page_texts --
-- The texts of a document's pages in order; one null text for a document without pages.
select p.text
from ragplane.documents d
join ragplane.corpora c on c.id = d.corpus_id
left join ragplane.pages p on p.document_id = d.id
where c.tenant = %(tenant)s and c.name = %(corpus)s and d.id = %(id)s
order by p.number

-- name: status --
-- What a corpus holds.
select c.fingerprint, c.dimensions, c.chunk_count as chunks,
    (select count(*) from ragplane.documents d where d.corpus_id = c.id) as documents,
    (select coalesce(sum(h.tokens), 0) from ragplane.chunks h where h.corpus_id = c.id) as tokens,
    (
        select coalesce(jsonb_object_agg(route, pages order by route), '{}')
        from (
            select p.route, count(*) as pages
            from ragplane.pages p
            join ragplane.documents d on d.id = p.document_id
            where d.corpus_id = c.id
            group by p.route
        ) as by_route
    ) as pages
from ragplane.corpora c
where c.tenant = %(tenant)s and c.name = %(corpus)s

-- name: begin_reembedding --
-- Note which model the second set of vectors is of.
update ragplane.corpora
set second_fingerprint = %(fingerprint)s, second_dimensions = %(dimensions)s
where tenant = %(tenant)s and name = %(corpus)s

-- name: unembedded --
-- Some chunks that have no vector in the second set, whole.
select h.id, h.document_id, h.ordinal, h.text, h.prefix, h.heading_path, h.first_page, h.last_page,
    h.start_offset, h.end_offset, h.tokens, h.sha256, h.boxes
from ragplane.chunks h
where h.corpus_id = %(corpus_id)s
    and not exists (
        select from ragplane.vectors v where v.chunk_id = h.id and v.slot = %(slot)s
    )
order by h.id
limit %(limit)s

-- name: insert_second_vectors --
-- Keep vectors of chunks that are still there; what is known stays as it is.
with kept as (
    select id, corpus_id from ragplane.chunks
    where corpus_id = %(corpus_id)s and id = any(%(ids)s::uuid[])
    -- Not those that a writer removes: once it commits, they are gone.
    for key share skip locked
)
insert into ragplane.vectors (chunk_id, slot, corpus_id, dimensions, embedding)
select h.id, %(slot)s, h.corpus_id, %(dimensions)s, n.embedding
from unnest(%(ids)s::uuid[], %(embeddings)s::halfvec[]) as n(id, embedding)
join kept h on h.id = n.id
on conflict (chunk_id, slot) do nothing

-- name: second_points --
-- As points, of the chunks that have a vector in the second set.
select h.id, h.document_id, d.generation, h.sha256 as text_sha256
from ragplane.vectors v
join ragplane.chunks h on h.id = v.chunk_id
join ragplane.documents d on d.id = h.document_id
where v.corpus_id = %(corpus_id)s and v.slot = %(slot)s

-- name: switch --
-- Exchange the two sets of vectors of a corpus, with their models.
update ragplane.corpora
set slot = 1 - slot, fingerprint = second_fingerprint, dimensions = second_dimensions,
    second_fingerprint = fingerprint, second_dimensions = dimensions
where id = %(corpus_id)s

-- name: drop_second_vectors --
-- Remove the second set of vectors of a corpus.
with gone as (
    delete from ragplane.vectors where corpus_id = %(corpus_id)s and slot = %(slot)s
)
update ragplane.corpora
set second_fingerprint = null, second_dimensions = null
where id = %(corpus_id)s

/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of chunks, each filled from its start. */
#include <stdalign.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/base.h"

struct pw_chunk {
    struct pw_chunk *next;
    size_t size;
    size_t used;
    alignas(max_align_t) uint8_t memory[];
};

void pw_arena_init(struct pw_arena *arena, size_t chunk_size)
{
    arena->chunks = NULL;
    arena->chunk_size = chunk_size;
}

void pw_arena_fini(struct pw_arena *arena)
{
    for (struct pw_chunk *chunk = arena->chunks; chunk != NULL;) {
        struct pw_chunk *next = chunk->next;
        pw_free(chunk);
        chunk = next;
    }
    arena->chunks = NULL;
}

void pw_arena_reset(struct pw_arena *arena)
{
    struct pw_chunk *first = arena->chunks;
    while (first != NULL && first->next != NULL) {
        struct pw_chunk *next = first->next;
        pw_free(first);
        first = next;
    }
    if (first != NULL)
        first->used = 0;
    arena->chunks = first;
}

static struct pw_chunk *add_chunk(struct pw_arena *arena, size_t size)
{
    size_t room = size > arena->chunk_size ? size : arena->chunk_size;
    struct pw_chunk *chunk = pw_realloc(NULL, sizeof(*chunk) + room);
    if (chunk == NULL)
        return NULL;
    chunk->next = arena->chunks;
    chunk->size = room;
    chunk->used = 0;
    arena->chunks = chunk;
    return chunk;
}

void *pw_arena_alloc(struct pw_arena *arena, size_t size)
{
    size_t rounded = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (rounded < size)
        return NULL;
    struct pw_chunk *chunk = arena->chunks;
    if (chunk == NULL || chunk->size - chunk->used < rounded)
        chunk = add_chunk(arena, rounded);
    if (chunk == NULL)
        return NULL;
    void *memory = chunk->memory + chunk->used;
    chunk->used += rounded;
    return memory;
}

char *pw_arena_text(struct pw_arena *arena, pawl_bytes bytes)
{
    char *copy = pw_arena_alloc(arena, bytes.size + 1);
    if (copy == NULL)
        return NULL;
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = '\0';
    return copy;
}

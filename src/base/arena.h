/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena: memory that lives until the next reset. One thread at a time. The oldest chunk is kept
 * for reuse. */
#ifndef PW_ARENA_H
#define PW_ARENA_H

#include <stddef.h>

#include "pawl/machine.h"

struct pw_chunk;

struct pw_arena {
    struct pw_chunk *chunks; /* newest first */
    size_t chunk_size;
};

/* A chunk is at least chunk_size bytes; the first one is got when it is needed. */
void pw_arena_init(struct pw_arena *arena, size_t chunk_size);
void pw_arena_fini(struct pw_arena *arena);

/* Forgets everything that was handed out; keeps one chunk. */
void pw_arena_reset(struct pw_arena *arena);

/* Aligned for any type, not zeroed. NULL when out of memory. */
void *pw_arena_alloc(struct pw_arena *arena, size_t size);

/* Copies. Text gets a final '\0'. NULL (data NULL) when out of memory. */
char *pw_arena_text(struct pw_arena *arena, pawl_bytes bytes);

#endif

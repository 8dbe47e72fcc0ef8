/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena: memory that lives until the next reset. One thread at a time. Chunks are kept for reuse up to `keep`. */
#ifndef PW_ARENA_H
#define PW_ARENA_H

#include <stddef.h>

#include "pawl/machine.h"

struct pw_chunk;

struct pw_arena {
    struct pw_chunk *chunks; /* newest first */
};

void pw_arena_init(struct pw_arena *arena);
void pw_arena_fini(struct pw_arena *arena);

/* Forgets everything that was handed out; keeps the first chunk. */
void pw_arena_reset(struct pw_arena *arena);

/* Aligned for any type, not zeroed. NULL when out of memory. */
void *pw_arena_alloc(struct pw_arena *arena, size_t size);

/* Copies. Text gets a final '\0'. NULL (data NULL) when out of memory. */
char *pw_arena_text(struct pw_arena *arena, pawl_bytes bytes);

#endif

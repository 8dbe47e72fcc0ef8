/* SPDX-License-Identifier: Apache-2.0
 *
 * Pseudo-random numbers (splitmix64: Steele, Lea, Flood 2014): for jitter and the simulated world's
 * order, not for secrets. */
#ifndef PW_RNG_H
#define PW_RNG_H

#include <stdint.h>

struct pw_rng {
    uint64_t state;
};

static inline uint64_t pw_rng_next(struct pw_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 to limit - 1; limit > 0. The bias at limits far below 2^64 does not matter here. */
static inline uint64_t pw_rng_below(struct pw_rng *rng, uint64_t limit)
{
    return pw_rng_next(rng) % limit;
}

#endif

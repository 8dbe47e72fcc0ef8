/* SPDX-License-Identifier: Apache-2.0
 *
 * The public key of an NKey's seed (https://docs.nats.io/running-a-nats-service/configuration/
 * securing_nats/auth_intro/nkey_auth): the library asks for both. Pure. */
#ifndef PW_NKEY_H
#define PW_NKEY_H

#include <stdbool.h>

#define PW_NKEY_SEED_SIZE 59   /* "SU...", with its '\0' */
#define PW_NKEY_PUBLIC_SIZE 57 /* "U...", with its '\0' */

/* False: not the seed of a user. */
bool pw_nkey_public(const char *seed, char to[PW_NKEY_PUBLIC_SIZE]);

#endif

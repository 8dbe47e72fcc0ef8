/* SPDX-License-Identifier: Apache-2.0
 *
 * How to be let in: a bus and pawl_nats, checked, and put into the library's options. No text that
 * leaves here has a secret. */
#ifndef PW_LOGIN_H
#define PW_LOGIN_H

#include <nats/nats.h>

#include "jetstream/nkey.h"
#include "pawl/engine.h"

/* Fills options in. `seed` is the caller's, used by the library as long as the options and what is
 * connected with them live. PAWL_E_CONFIG names the file; PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_login_apply(natsOptions *options, const char *bus, const pawl_nats *nats,
                                      char seed[PW_NKEY_SEED_SIZE], pawl_why *why);

#endif

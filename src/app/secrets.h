/* SPDX-License-Identifier: Apache-2.0
 *
 * How to be let in by NATS, from the settings: passwords and tokens are read from the files that
 * the settings name. */
#ifndef PW_SECRETS_H
#define PW_SECRETS_H

#include "app/config.h"

#define PW_SECRET_MAX 1023

struct pw_secrets {
    pawl_nats nats; /* borrows from here and from the settings */
    char password[PW_SECRET_MAX + 1];
    char token[PW_SECRET_MAX + 1];
};

/* PAWL_E_CONFIG: names the file, and says nothing of what is in it. */
PAWL_MUST_USE pawl_err pw_secrets_read(struct pw_secrets *secrets, const struct pw_config *config,
                                       pawl_why *why);

#endif

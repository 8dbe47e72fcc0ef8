/* SPDX-License-Identifier: Apache-2.0
 *
 * A subject for answers, that nobody else listens to. */
#ifndef PW_JETSTREAM_INBOX_H
#define PW_JETSTREAM_INBOX_H

#include <string.h>

#include <nats/nats.h>

#include "base/base.h"
#include "jetstream/link.h"

#define PW_INBOX_SIZE 64

/* PW_INBOX_PREFIX.<unique>: the library's is unique, but has a prefix of its own. */
static inline natsStatus pw_inbox_print(char to[PW_INBOX_SIZE])
{
    natsInbox *inbox = NULL;
    natsStatus status = natsInbox_Create(&inbox);
    if (status != NATS_OK)
        return status;
    const char *unique = strchr(inbox, '.');
    pw_print(to, PW_INBOX_SIZE, "%s%s", PW_INBOX_PREFIX, unique != NULL ? unique : ".");
    natsInbox_Destroy(inbox);
    return NATS_OK;
}

#endif

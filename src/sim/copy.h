/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are kept behind the struct that points to them. NULL stays NULL. */
#ifndef PW_SIM_COPY_H
#define PW_SIM_COPY_H

#include <string.h>

static inline size_t pw_sim_text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies to *at, which goes on behind it. */
static inline const char *pw_sim_text_keep(char **at, const char *text)
{
    if (text == NULL)
        return NULL;
    char *kept = *at;
    size_t size = pw_sim_text_size(text);
    memcpy(kept, text, size);
    *at += size;
    return kept;
}

#endif

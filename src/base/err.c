/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of error codes, from the list in err.h. */
#include <stddef.h>

#include "pawl/err.h"

struct entry {
    const char *name;
    const char *text;
    pawl_err_class class_of;
};

static const struct entry entries[] = {
#define ENTRY(name, class_of, text) { #name, text, PAWL_CLASS_##class_of },
    PAWL_ERRORS(ENTRY)
#undef ENTRY
};

static const struct entry *entry_of(pawl_err err)
{
    static const struct entry unknown = { "E_INVALID", "not an error code", PAWL_CLASS_MISUSE };
    return (size_t)err < PAWL_ERR_COUNT ? &entries[err] : &unknown;
}

const char *pawl_err_text(pawl_err err)
{
    return entry_of(err)->text;
}

const char *pawl_err_name(pawl_err err)
{
    return entry_of(err)->name;
}

pawl_err_class pawl_err_class_of(pawl_err err)
{
    return entry_of(err)->class_of;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for people, by libsmartcols. Out of memory is remembered, and told at the end. Main
 * thread. */
#ifndef PW_SHEET_H
#define PW_SHEET_H

#include <stdbool.h>
#include <stddef.h>

struct libscols_table;

struct pw_sheet {
    struct libscols_table *table; /* NULL: failed, or printed */
    size_t columns;
    size_t rows;
    bool headless;
};

void pw_sheet_init(struct pw_sheet *table, const char *const *heads, size_t columns);

/* Copies the cells. */
void pw_sheet_row(struct pw_sheet *table, const char *const *cells);

/* Prints what there is, without heads the second time; rows may follow. */
void pw_sheet_flush(struct pw_sheet *table);

/* Prints and frees. False: out of memory. */
bool pw_sheet_print(struct pw_sheet *table);

#endif

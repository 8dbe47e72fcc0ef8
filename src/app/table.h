/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for people, by libsmartcols. Out of memory is remembered, and told at the end. Main thread. */
#ifndef PW_TABLE_H
#define PW_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct libscols_table;

struct pw_table {
    struct libscols_table *table; /* NULL: failed, or printed */
    size_t columns;
    size_t rows;
    bool headless;
};

void pw_table_init(struct pw_table *table, const char *const *heads, size_t columns);

/* Copies the cells. */
void pw_table_row(struct pw_table *table, const char *const *cells);

/* Prints what there is, without heads the second time; rows may follow. */
void pw_table_flush(struct pw_table *table);

/* Prints and frees. False: out of memory. */
bool pw_table_print(struct pw_table *table);

#endif

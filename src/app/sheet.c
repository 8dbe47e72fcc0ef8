/* SPDX-License-Identifier: Apache-2.0
 *
 * See sheet.h. */
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>

#include "app/sheet.h"

static void give_up(struct pw_sheet *table)
{
    scols_unref_table(table->table);
    table->table = NULL;
}

void pw_sheet_init(struct pw_sheet *table, const char *const *heads, size_t columns)
{
    *table = (struct pw_sheet){ .table = scols_new_table(), .columns = columns };
    for (size_t i = 0; i < columns && table->table != NULL; i++) {
        struct libscols_column *column = scols_table_new_column(table->table, heads[i], 0, 0);
        if (column == NULL)
            give_up(table);
    }
}

void pw_sheet_row(struct pw_sheet *table, const char *const *cells)
{
    if (table->table == NULL)
        return;
    struct libscols_line *line = scols_table_new_line(table->table, NULL);
    for (size_t i = 0; line != NULL && i < table->columns; i++)
        if (scols_line_set_data(line, i, cells[i]) != 0)
            line = NULL;
    if (line == NULL)
        give_up(table);
    else
        table->rows++;
}

void pw_sheet_flush(struct pw_sheet *table)
{
    if (table->table == NULL || (table->rows == 0 && table->headless))
        return;
    (void)scols_table_enable_noheadings(table->table, table->headless); /* only a flag */
    if (table->rows > 0 && scols_print_table(table->table) != 0) {
        give_up(table);
        return;
    }
    (void)putchar('\n');
    scols_table_remove_lines(table->table);
    table->headless = true;
    table->rows = 0;
}

bool pw_sheet_print(struct pw_sheet *table)
{
    if (table->table == NULL)
        return false;
    bool printed = table->rows == 0 || scols_print_table(table->table) == 0;
    scols_unref_table(table->table);
    table->table = NULL;
    return printed;
}

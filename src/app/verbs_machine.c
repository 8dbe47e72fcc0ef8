/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs that need no store: check, graph, config. */
#include <stdio.h>

#include "app/app.h"
#include "app/sheet.h"
#include "core/machine.h"

/* --- check -------------------------------------------------------------------------------- */

static void put_machine(const struct pw_app *app, const pawl_machine *machine)
{
    if (app->config.json != 0)
        pw_put_json(json_pack("{s:s, s:I, s:I, s:I}", "machine", machine->name, "states",
                              (json_int_t)machine->states_count, "events",
                              (json_int_t)machine->events_count, "edges",
                              (json_int_t)machine->edges_count));
    else
        (void)printf("%s: %zu states, %zu events, %zu edges\n", machine->name,
                     machine->states_count, machine->events_count, machine->edges_count);
}

int pw_verb_check(struct pw_app *app)
{
    char path[PW_SOCKET_PATH_MAX + 1] = "";
    pawl_why why = { "" };
    int status = PW_EXIT_OK;
    if (pw_config_socket(&app->config, path, sizeof(path), &why) != PAWL_OK)
        return pw_complain_usage(app, "%s", why.text);
    for (const pawl_unit *unit = app->units; unit->machine != NULL; unit++) {
        pawl_err err = pawl_machine_check(unit->machine, &why);
        if (err != PAWL_OK)
            status = pw_complain(app, err, &why, "check");
        else
            put_machine(app, unit->machine);
    }
    return status;
}

/* --- graph -------------------------------------------------------------------------------- */

/* Names are of the wire alphabet: nothing to escape, once a machine is checked. */
static void put_state(const pawl_state *state)
{
    bool final = (state->flags & PAWL_FINAL) != 0;
    bool start = (state->flags & PAWL_START) != 0;
    (void)printf("    \"%s\" [shape=%s", state->name, final ? "doublecircle" : "box");
    if (state->work != NULL)
        (void)printf(", style=\"rounded,filled\", label=\"%s\\n(works)\"", state->name);
    else if (!final)
        (void)printf(", style=rounded");
    (void)printf("];\n");
    if (start)
        (void)printf("    start -> \"%s\";\n", state->name);
}

static void put_edge(const pawl_machine *machine, const pawl_edge *edge)
{
    const pawl_state *from = &machine->states[edge->from];
    (void)printf("    \"%s\" -> \"%s\" [label=\"%s", from->name, machine->states[edge->to].name,
                 pw_machine_event_name(machine, edge->event));
    if (edge->event == PAWL_TIMEOUT)
        (void)printf(" %llu ms", (unsigned long long)from->timeout_ms);
    (void)printf("\"%s];\n", edge->late ? ", style=dashed" : "");
}

static void put_graph(const pawl_machine *machine)
{
    (void)printf("digraph \"%s\" {\n    rankdir=LR;\n    start [shape=point, label=\"\"];\n",
                 machine->name);
    for (size_t i = 0; i < machine->states_count; i++)
        put_state(&machine->states[i]);
    for (size_t i = 0; i < machine->edges_count; i++)
        put_edge(machine, &machine->edges[i]);
    (void)printf("}\n");
}

int pw_verb_graph(struct pw_app *app)
{
    pawl_why why = { "" };
    const char *only = app->args.words_count > 0 ? app->args.words[0] : NULL;
    bool found = only == NULL;
    for (const pawl_unit *unit = app->units; unit->machine != NULL; unit++) {
        pawl_err err = pawl_machine_check(unit->machine, &why);
        if (err != PAWL_OK)
            return pw_complain(app, err, &why, "graph");
        if (only != NULL && strcmp(only, unit->machine->name) != 0)
            continue;
        found = true;
        put_graph(unit->machine);
    }
    if (found)
        return PW_EXIT_OK;
    (void)pw_fail(&why, PAWL_E_USAGE, "this program has no such machine");
    return pw_complain(app, PAWL_E_USAGE, &why, "graph %s", only);
}

/* --- config ------------------------------------------------------------------------------- */

static void put_sample(void)
{
    struct pw_config defaults;
    char value[PW_CONFIG_PATH_MAX + 1] = "";
    pw_config_init(&defaults);
    (void)printf("# Settings of pawl's daemon and tool: --config names this file. Printed by\n"
                 "# `config --sample`. The environment (PAWL_STOP_MS) goes before it, flags\n"
                 "# (--stop-ms) before both. What is commented out shows the default. A line has\n"
                 "# at most 198 bytes; a comment begins with # or ; at its start.\n");
    for (size_t i = 0; i < pw_settings_count; i++) {
        if (strcmp(pw_settings[i].key, "config") == 0)
            continue;
        pw_config_print(&defaults, i, value, sizeof(value));
        (void)printf("\n# %s\n#%s =%s%s\n", pw_settings[i].help, pw_settings[i].key,
                     value[0] != '\0' ? " " : "", value);
    }
}

static void put_settings_json(const struct pw_config *config)
{
    char value[PW_CONFIG_PATH_MAX + 1] = "";
    char origin[PW_CONFIG_PATH_MAX + 16] = "";
    for (size_t i = 0; i < pw_settings_count; i++) {
        pw_config_print(config, i, value, sizeof(value));
        pw_config_print_origin(config, i, origin, sizeof(origin));
        pw_put_json(json_pack("{s:s, s:s, s:s, s:s*, s:s}", "key", pw_settings[i].key, "value",
                              value, "origin", origin, "default", pw_settings[i].initial, "help",
                              pw_settings[i].help));
    }
}

int pw_verb_config(struct pw_app *app)
{
    static const char *const heads[] = { "KEY", "VALUE", "ORIGIN", "DEFAULT", "HELP" };
    char value[PW_CONFIG_PATH_MAX + 1] = "";
    char origin[PW_CONFIG_PATH_MAX + 16] = "";
    if (app->args.sample != 0) {
        put_sample();
        return PW_EXIT_OK;
    }
    if (app->config.json != 0) {
        put_settings_json(&app->config);
        return PW_EXIT_OK;
    }
    struct pw_sheet table;
    pw_sheet_init(&table, heads, PW_COUNT(heads));
    for (size_t i = 0; i < pw_settings_count; i++) {
        pw_config_print(&app->config, i, value, sizeof(value));
        pw_config_print_origin(&app->config, i, origin, sizeof(origin));
        const char *row[] = { pw_settings[i].key, value, origin,
                              pw_settings[i].initial != NULL ? pw_settings[i].initial : "",
                              pw_settings[i].help };
        pw_sheet_row(&table, row);
    }
    return pw_sheet_print(&table) ? PW_EXIT_OK : pw_complain(app, PAWL_E_NOMEM, NULL, "config");
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb `provision`: the streams of the namespace, printed, compared, made. */
#include <stdio.h>

#include "app/app.h"
#include "app/secrets.h"
#include "jetstream/provision.h"

/* The worst of what was seen. */
struct sight {
    struct pw_app *app;
    bool make;
    int status;
};

static void put_one(const struct pw_app *app, const struct pw_provisioned *one)
{
    const char *state = one->made ? "made" : "as described";
    static const char before[] = "stream "; /* the error's text: "stream PAWL_main_0: ..." */
    const char *text =
        strncmp(one->text, before, strlen(before)) == 0 ? one->text + strlen(before) : one->text;
    if (app->config.json != 0)
        pw_put_json(json_pack("{s:s, s:b, s:b, s:s*}", "stream", one->stream, "ok",
                              one->err == PAWL_OK, "made", one->made, "text",
                              one->err != PAWL_OK ? one->text : NULL));
    else if (one->err == PAWL_OK)
        (void)printf("%s: %s\n", one->stream, state);
    else
        (void)printf("%s\n", text);
}

static void see(void *arg, const struct pw_provisioned *one)
{
    struct sight *sight = arg;
    pawl_why why = { "" };
    if (one->err == PAWL_OK || !sight->make) {
        put_one(sight->app, one);
        if (one->err != PAWL_OK)
            sight->status = PW_EXIT_FAULTS;
        return;
    }
    pw_print(why.text, sizeof(why.text), "%s", one->text);
    sight->status = pw_complain(sight->app, one->err, &why, "provision");
}

/* As the settings say, or as the data directory has; one for a new one. */
static pawl_err count_shards(const struct pw_app *app, uint32_t *shards, pawl_why *why)
{
    uint32_t existing = 0;
    if (app->config.shards > 0) {
        *shards = (uint32_t)app->config.shards;
        return PAWL_OK;
    }
    pawl_err err = pw_app_count_shards(app->config.dir, &existing, why);
    if (err == PAWL_OK)
        *shards = existing > 0 ? existing : 1;
    return err;
}

static int run(struct pw_app *app, struct pw_provision *provision, bool make)
{
    struct sight sight = { .app = app, .make = make, .status = PW_EXIT_OK };
    struct pw_secrets secrets;
    pawl_why why = { "" };
    if (strcmp(app->config.bus, "local:") == 0)
        return pw_complain_usage(app, "provision: the bus is local:, and has no streams; give "
                                      "--bus nats://host:port");
    pawl_err err = pw_secrets_read(&secrets, &app->config, &why);
    if (err == PAWL_OK) {
        provision->nats = &secrets.nats;
        err = pw_provision_run(provision, make, see, &sight, &why);
    }
    return err == PAWL_OK ? sight.status : pw_complain(app, err, &why, "provision");
}

int pw_verb_provision(struct pw_app *app)
{
    pawl_why why = { "" };
    const struct pw_args *args = &app->args;
    struct pw_provision provision = { .bus = app->config.bus,
                                      .ns = app->config.ns,
                                      .replicas = (uint32_t)args->replicas };
    if (args->print != 0 && args->check != 0)
        return pw_complain_usage(app, "provision: one of --print and --check");
    pawl_err err = count_shards(app, &provision.shards, &why);
    if (err != PAWL_OK)
        return pw_complain(app, err, &why, "provision");
    if (args->print == 0)
        return run(app, &provision, args->check == 0);
    err = pw_provision_print(&provision, pw_put_json);
    return err == PAWL_OK ? PW_EXIT_OK : pw_complain(app, err, NULL, "provision");
}

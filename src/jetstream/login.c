/* SPDX-License-Identifier: Apache-2.0
 *
 * See login.h. The library's own error texts are not used: they may quote a URL with its password.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jetstream/bus.h"
#include "jetstream/login.h"

/* --- files -------------------------------------------------------------------------------- */

/* The server's nonce is signed with the seed; the library frees the signature. */
static natsStatus sign(char **error, unsigned char **signature, int *size, const char *nonce,
                       void *arg)
{
    *error = NULL;
    return nats_Sign(arg, nonce, signature, size);
}

/* The seed is a line of the file; comments and the lines of `nsc` may stand around it. */
static pawl_err read_seed(const char *path, char seed[PW_NKEY_SEED_SIZE], pawl_why *why)
{
    char line[256] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return pw_fail(why, PAWL_E_CONFIG, "NKey %.128s: %s", path, strerror(errno));
    bool found = false;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, " \t\r\n")] = '\0';
        found = strlen(line) == PW_NKEY_SEED_SIZE - 1 && line[0] == 'S';
    }
    (void)fclose(file); /* was only read */
    if (found)
        pw_print(seed, PW_NKEY_SEED_SIZE, "%s", line);
    return found ? PAWL_OK
                 : pw_fail(why, PAWL_E_CONFIG, "NKey %.128s: has no seed of a user (SU...)", path);
}

static pawl_err apply_nkey(natsOptions *options, const char *path, char seed[PW_NKEY_SEED_SIZE],
                           pawl_why *why)
{
    char public_key[PW_NKEY_PUBLIC_SIZE] = "";
    pawl_err err = read_seed(path, seed, why);
    if (err != PAWL_OK)
        return err;
    if (!pw_nkey_public(seed, public_key))
        return pw_fail(why, PAWL_E_CONFIG, "NKey %.128s: its seed is not one of a user", path);
    return natsOptions_SetNKey(options, public_key, sign, seed) == NATS_OK ? PAWL_OK : PAWL_E_NOMEM;
}

/* The library reads it at each connect, so that a renewed one is taken; here only whether it can.
 */
static pawl_err apply_creds(natsOptions *options, const char *path, pawl_why *why)
{
    char line[256] = "";
    bool found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return pw_fail(why, PAWL_E_CONFIG, "credentials %.128s: %s", path, strerror(errno));
    while (!found && fgets(line, sizeof(line), file) != NULL)
        found = strstr(line, "BEGIN NATS USER JWT") != NULL;
    (void)fclose(file); /* was only read */
    if (!found)
        return pw_fail(why, PAWL_E_CONFIG, "credentials %.128s: no user's JWT in it", path);
    return natsOptions_SetUserCredentialsFromFiles(options, path, NULL) == NATS_OK ? PAWL_OK
                                                                                   : PAWL_E_NOMEM;
}

/* --- all of it ---------------------------------------------------------------------------- */

static bool given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static pawl_err check_login(const pawl_nats *nats, pawl_why *why)
{
    int ways = given(nats->user) + given(nats->token) + given(nats->nkey_seed_file) +
               given(nats->creds_file);
    if (ways > 1)
        return pw_fail(why, PAWL_E_CONFIG,
                       "more than one of user, token, NKey and credentials is given");
    if (given(nats->user) != given(nats->password))
        return pw_fail(why, PAWL_E_CONFIG, "a user and a password belong together");
    if (given(nats->tls_cert_file) != given(nats->tls_key_file))
        return pw_fail(why, PAWL_E_CONFIG, "a TLS certificate and its key belong together");
    return PAWL_OK;
}

static pawl_err apply_login(natsOptions *options, const pawl_nats *nats,
                            char seed[PW_NKEY_SEED_SIZE], pawl_why *why)
{
    natsStatus status = NATS_OK;
    if (given(nats->nkey_seed_file))
        return apply_nkey(options, nats->nkey_seed_file, seed, why);
    if (given(nats->creds_file))
        return apply_creds(options, nats->creds_file, why);
    if (given(nats->user))
        status = natsOptions_SetUserInfo(options, nats->user, nats->password);
    else if (given(nats->token))
        status = natsOptions_SetToken(options, nats->token);
    return status == NATS_OK ? PAWL_OK : PAWL_E_NOMEM;
}

static pawl_err check_readable(const char *what, const char *path, pawl_why *why)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return pw_fail(why, PAWL_E_CONFIG, "%s %.128s: %s", what, path, strerror(errno));
    (void)fclose(file); /* was only opened */
    return PAWL_OK;
}

/* Where distributions keep the authorities that everybody trusts. */
static const char *const common_authorities[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
};

static const char *find_authorities(const pawl_nats *nats)
{
    if (given(nats->tls_ca_file))
        return nats->tls_ca_file;
    for (size_t i = 0; i < PW_COUNT(common_authorities); i++)
        if (check_readable("", common_authorities[i], NULL) == PAWL_OK)
            return common_authorities[i];
    return NULL;
}

static pawl_err apply_certificate(natsOptions *options, const pawl_nats *nats, pawl_why *why)
{
    pawl_err err = check_readable("TLS certificate", nats->tls_cert_file, why);
    if (err == PAWL_OK)
        err = check_readable("TLS key", nats->tls_key_file, why);
    if (err != PAWL_OK)
        return err;
    if (natsOptions_LoadCertificatesChain(options, nats->tls_cert_file, nats->tls_key_file) !=
        NATS_OK)
        return pw_fail(why, PAWL_E_CONFIG,
                       "TLS: %.96s is no certificate in PEM, or %.96s not its "
                       "key",
                       nats->tls_cert_file, nats->tls_key_file);
    return PAWL_OK;
}

static pawl_err apply_tls(natsOptions *options, const pawl_nats *nats, pawl_why *why)
{
    const char *authorities = find_authorities(nats);
    if (natsOptions_SetSecure(options, true) != NATS_OK)
        return pw_fail(why, PAWL_E_CONFIG, "TLS: this libnats has none");
    pawl_err err = authorities == NULL ? PAWL_OK : check_readable("TLS CA", authorities, why);
    if (err != PAWL_OK)
        return err;
    if (authorities != NULL &&
        natsOptions_LoadCATrustedCertificates(options, authorities) != NATS_OK)
        return pw_fail(why, PAWL_E_CONFIG, "TLS CA %.128s: no certificate in PEM", authorities);
    return given(nats->tls_cert_file) ? apply_certificate(options, nats, why) : PAWL_OK;
}

static pawl_err apply_servers(natsOptions *options, const char *bus, pawl_why *why)
{
    const char *servers[PW_BUS_SERVERS_MAX] = { NULL };
    int count = 0;
    char *copy = pw_strdup(bus);
    if (copy == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    for (char *at = copy; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma++ = '\0';
        servers[count++] = at;
        at = comma;
    }
    natsStatus status = natsOptions_SetServers(options, servers, count);
    pw_free(copy);
    return status == NATS_OK ? PAWL_OK : PAWL_E_NOMEM;
}

pawl_err pw_login_apply(natsOptions *options, const char *bus, const pawl_nats *nats,
                        char seed[PW_NKEY_SEED_SIZE], pawl_why *why)
{
    static const pawl_nats none = { .user = NULL };
    bool tls = false;
    if (nats == NULL)
        nats = &none;
    pawl_err err = pw_bus_check(bus, NULL, &tls, why);
    if (err != PAWL_OK)
        return pw_fail_in(why, err, "bus");
    err = check_login(nats, why);
    if (err == PAWL_OK)
        err = apply_servers(options, bus, why);
    if (err == PAWL_OK)
        err = apply_login(options, nats, seed, why);
    tls = tls || given(nats->tls_ca_file) || given(nats->tls_cert_file);
    if (err == PAWL_OK && tls)
        err = apply_tls(options, nats, why);
    return err == PAWL_OK ? err : pw_fail_in(why, err, "NATS");
}

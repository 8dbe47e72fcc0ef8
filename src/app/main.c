/* SPDX-License-Identifier: Apache-2.0
 *
 * pawl_main: the user's binary as daemon and tool. */
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "app/verbs.h"

extern char **environ;

/* A standard descriptor that is closed would become the store's: a message would then be written
 * into it. What is opened here refuses its use, as a closed one would. */
static bool keep_standard_descriptors(void)
{
    static const int flags[] = { O_WRONLY, O_RDONLY, O_RDONLY };
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", flags[fd]) != fd)
            return false;
    return true;
}

/* A reader that is gone, and a file that may not grow, are errors of a write. */
static void ignore_signals(void)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void)sigaction(SIGPIPE, &ignore, NULL); /* cannot fail for these */
    (void)sigaction(SIGXFSZ, &ignore, NULL);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* A reader that closed the pipe has seen enough: that is no error. */
static int end_output(const struct pw_app *app, int status)
{
    struct pollfd look = { .fd = STDOUT_FILENO, .events = POLLOUT };
    bool flushed = fflush(stdout) == 0;
    if (flushed && ferror(stdout) == 0)
        return status;
    if (poll(&look, 1, 0) == 1 && (look.revents & POLLERR) != 0)
        return status;
    return pw_complain(app, PAWL_E_IO, NULL, "standard output");
}

int pawl_main(int argc, char **argv, const pawl_unit *units)
{
    static const pawl_unit none[] = { { .machine = NULL } };
    struct pw_line line;
    pawl_why why = { "" };
    struct pw_app app = { .program = argc > 0 ? base_name(argv[0]) : "pawl",
                          .units = units != NULL ? units : none };
    if (argc < 1 || !keep_standard_descriptors())
        return PW_EXIT_USAGE;
    ignore_signals();
    (void)setlocale(LC_CTYPE, ""); /* an unknown one: ASCII */
    if (!pw_line_read(&line, &app, argc, argv))
        return PW_EXIT_USAGE;
    if (line.done)
        return end_output(&app, PW_EXIT_OK);
    if (pw_config_load(&app.config, line.flags, line.flags_count, environ, &why) != PAWL_OK)
        return pw_complain_usage(&app, "%s", why.text);
    return end_output(&app, line.verb->run(&app));
}

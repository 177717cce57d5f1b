/* Every test runs in a process of its own. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/conform.h"
#include "cli/signals.h"

static bool read_result(int fd, result *r)
{
    size_t got = 0;
    while (got < sizeof *r) {
        ssize_t n = read(fd, (char *)r + got, sizeof *r - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        got += (size_t)n;
    }
    r->text[TEXT_MAX - 1] = 0;
    return r->outcome >= 0 && r->outcome < OUTCOMES && r->opset >= 0 && r->opset <= OPSET_MAX;
}

void cli_conform_isolated(const conform *c, const char *path, bool light, result *r)
{
    int fds[2], status = 0;
    fflush(stdout);
    if (pipe(fds) != 0) {
        cli_conform_say(r, FAIL, "no pipe: %s", strerror(errno));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        result own = {.outcome = FAIL};
        close(fds[0]);
        cli_catch_signals();
        alarm((unsigned)c->timeout); /* SIGALRM ends the process */
        cli_conform_run(c, path, light, &own);
        ssize_t n = write(fds[1], &own, sizeof own);
        _exit(n == (ssize_t)sizeof own ? 0 : 1);
    }
    close(fds[1]);
    bool whole = child > 0 && read_result(fds[0], r);
    close(fds[0]);
    if (child > 0) waitpid(child, &status, 0);
    if (whole) return;
    *r = (result){.outcome = CRASH};
    if (child < 0)
        cli_conform_say(r, FAIL, "no process: %s", strerror(errno));
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        cli_conform_say(r, HANG, "took more than %lld s", (long long)c->timeout);
    else
        cli_conform_say(r, CRASH, "ended by signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

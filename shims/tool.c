/* The client, built with the package (build.py). `readcache shims install` puts it under the name of each tool, and under
 * that of `readcache-run`; the hooks of hosts start it as `readcache`.
 *
 * As a tool it makes the same decision as tool.sh for most calls, at a fraction of its time: a call from which the agent
 * does not read, or that is not made by its own shell, becomes the real tool here. Else a server that runs already is
 * asked (client.c); where there is none, and in every doubt, it is left to the script that lies beside this program in
 * `.tool/`. Where that cannot be started either, as in a chroot without /proc or a shell, and where it is not there, this
 * becomes the real tool whatever happens.
 *
 * `readcache-run -c COMMAND` is `readcache run -c COMMAND`; with `--shell` for agent-command.sh. */
#include "shim.h"

#define MOST_WORDS 4096 /* of a tool's call that a server is asked about */

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#else
__asm__(".globl _start\n_start: mov x0, sp\n bl begin\n");
#endif

/* A page that is written to for the first time costs as much as a call of the system: what passes through needs few. */
static char name[256], depth[64], file[4096], behind[4096], directory[4096], inside[4096], *sink, *started;
static char **vars, *path, *path_end; /* what a program is started with: of `begin`, as long as they have to be */
static int met;    /* were there shims on PATH? */
static long faced; /* the shell that faces the agent, as this does; 0 for none, -1 in doubt */

/* Is fd 1 something else for sure than "mnt_id:N ino:N …"? The system tells sooner than /proc does; of files alone it may
 * tell another number. */
static int is_elsewhere(const char *sink) {
  unsigned long facts[32], mode; /* struct statx: stx_mode is in its fourth word, stx_ino the fifth, stx_mnt_id the 19th */
  if (sys6(SYS_statx, 1, (long)"", 0x1000 /* AT_EMPTY_PATH */, 0x1101 /* type, number, mount */, (long)facts, 0)) return 0;
  if (!(sink = after(sink, "mnt_id:")) || !(facts[0] & 0x1000)) return 0; /* Linux before 5.8 does not tell the mount */
  if (!(sink = after(sink, digits(facts[18]))) || *sink != ' ') return 1;
  mode = facts[3] >> 32;
  return (mode & 0170000) == 010000 /* S_IFIFO */ && (sink = after(sink, " ino:")) &&
         (!(sink = after(sink, digits(facts[4]))) || *sink != ' ');
}

/* Does `sink`, "PID mnt_id:N ino:N …", name this process or its parent, and what its fd 1 is? Its process id then; -1 in
 * doubt. */
static long may_face_the_agent(char *sink) {
  static char info[1024], fd[128];
  long pid = 0, in, size;
  char *to = fd, *line;
  for (; *sink >= '0' && *sink <= '9'; sink++) pid = pid * 10 + *sink - '0';
  if (*sink++ != ' ' || (pid != sys(SYS_getppid, 0, 0, 0, 0) && pid != sys(SYS_getpid, 0, 0, 0, 0)) || is_elsewhere(sink))
    return 0;
  in = sys(SYS_openat, HERE, (long)"/proc/self/fdinfo/1", CLOSE_ON_EXEC, 0);
  size = sys(SYS_read, in, (long)info, sizeof info - 1, 0);
  if (in >= 0) sys(SYS_close, in, 0, 0, 0);
  if (in < 0 || size <= 0) return 0;
  for (line = info; *line; line++) {
    const char *field = after(line, "mnt_id:\t") ? "mnt_id:" : after(line, "ino:\t") ? "ino:" : 0;
    if (field) {
      to = add(to, fd + sizeof fd - 2, field);
      for (line = after(line, field) + 1; to && to + 2 < fd + sizeof fd && *line > ' '; line++) *to++ = *line;
      if (!to) return -1;
      *to++ = ' ';
    }
    while (*line && *line != '\n') line++;
    if (!*line) break;
  }
  *to = 0;
  return after(sink, fd) ? pid : 0;
}

/* What stands behind the last `sign` of a text. */
static char *last_part_after(char *text, char sign) {
  char *at, *last = text;
  for (at = text; *at; at++)
    if (*at == sign) last = at + 1;
  return last;
}

static char *last_part(char *path) { return last_part_after(path, '/'); }

/* Puts `directory/last` into `file`; 0 when there is no room. An empty entry of PATH is the working directory. */
static int join(const char *directory, const char *last) {
  char *to = add(file, file + sizeof file, *directory ? directory : ".");
  return add(add(to, file + sizeof file, "/"), file + sizeof file, last) != 0;
}

/* Is the file this very program? */
static int is_this(const char *path) {
  static unsigned long own[32];
  unsigned long other[32];
  if (!own[1] && sys(SYS_newfstatat, HERE, (long)started, (long)own, 0) &&
      sys(SYS_newfstatat, HERE, (long)"/proc/self/exe", (long)own, 0))
    return 0;
  return !sys(SYS_newfstatat, HERE, (long)path, (long)other, 0) && own[0] == other[0] && own[1] == other[1];
}

/* Finds the real tool as tool.sh does: its name into `file`, and into `path` what PATH is to be; 0 in doubt. In a
 * directory whose name is too long for a path, the system finds nothing either. */
static int find_real_tool(char *given) {
  char *to = path + 5, *from, *end;
  for (from = given;; from = end + 1) {
    char last;
    int there, of_shims;
    for (end = from; *end && *end != ':'; end++) continue;
    last = *end;
    *end = 0;
    there = join(from, name) && !sys(SYS_faccessat, HERE, (long)file, 1 /* X_OK */, 0);
    if (there && !is_this(file)) {
      of_shims = join(from, ".readcache-shims") && !sys(SYS_faccessat, HERE, (long)file, 0, 0);
      join(from, name);
      *end = last;
      if (!of_shims) return add(to, path_end, from) != 0;
    }
    met |= there;
    *end = 0;
    if (!there) to = add(add(to, path_end, from), path_end, ":");
    *end = last;
    if (!last || !to) return 0;
  }
}

/* Finds the real tool that PATH has, or where it is `forced`, and PATH has none, the system's own; makes ready what it is
 * started with, and finds out whether it may face the agent. 0 in doubt. */
static int prepare(char **envp, int forced) {
  static char systems[] = "/usr/local/bin:/usr/bin:/bin";
  char *given = 0, *more;
  int count = 0, in_circles = 0;
  add(path, path_end, "PATH=");
  add(depth, depth + sizeof depth, "READCACHE_DEPTH=+");
  for (; *envp; envp++) {
    char *value = after(*envp, "PATH=");
    if (value) given = value;
    if ((more = after(*envp, "READCACHE_DEPTH=")) && !add(depth + 17, depth + 24, more)) in_circles = 1;
    if ((more = after(*envp, "READCACHE_SINK=")) && !forced) faced = may_face_the_agent(sink = more);
    if (!value && !after(*envp, "READCACHE_DEPTH=")) vars[count++] = *envp;
  }
  if (in_circles) given = 0;
  if ((!given || !*given || !find_real_tool(given)) && (!forced || !find_real_tool(systems))) return 0;
  vars[count++] = depth;
  vars[count++] = path;
  vars[count] = 0;
  return 1;
}

/* Where the variables that are added are more than the system takes, the tool has those that were given. */
static void become_tool(char **argv, char **envp) {
  sys(SYS_execve, (long)file, (long)argv, (long)vars, 0);
  sys(SYS_execve, (long)file, (long)argv, (long)envp, 0);
}

static void become_real_tool(char **argv, char **envp) {
  if (prepare(envp, 1)) become_tool(argv, envp);
}

/* Where this program lies. */
static const char *own_directory(void) {
  char *to = directory;
  long size = sys(SYS_readlinkat, HERE, (long)"/proc/self/exe", (long)directory, sizeof directory - 1);
  to = size > 0 ? to + size : add(to, directory + sizeof directory, started); /* there may be no /proc */
  while (to > directory && to[-1] != '/') to--;
  if (to > directory + 1) to--;
  *to = 0;
  return directory;
}

/* Asks the server where this faces the agent for sure. 0 where there is nobody to ask, or in doubt. */
static int ask(char **argv, char **envp) {
  static char shells[64], *words[MOST_WORDS];
  struct call call = {"tool", words, envp, file, argv, vars, 0};
  int at;
  if (same(variable(envp, "READCACHE"), "off") || is_switched_off(envp)) return 1;
  if (faced != sys(SYS_getpid, 0, 0, 0, 0)) {
    add(add(add(shells, shells + 64, "/proc/"), shells + 64, digits(faced)), shells + 64, "/fd/1");
    if (!same_file("/proc/self/fd/1", shells)) return 1; /* the shell prints to somewhere else by now */
    call.caller = faced;
  } else if (met || !same(last_part_after(sink, ' '), "bash"))
    return 1;
  for (at = 0; argv[at]; at++) {
    if (at + 2 > (int)(sizeof words / sizeof *words)) return 0;
    words[at] = argv[at];
  }
  words[0] = name;
  return serve(&call, own_directory());
}

/* The script beside this program that does it without a server; it starts one for the next time. */
static void become_script(char **argv, char **envp) {
  unsigned long files[2]; /* the most that may be open: a shell opens its script as the eleventh */
  int count = 0;
  char *to;
  if (!sys(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, (long)files) && files[0] < 12) return;
  to = add(behind, behind + sizeof behind, own_directory());
  for (; *envp; envp++) vars[count++] = *envp;
  if (faced > 0) vars[count++] = "READCACHE_ALONE=" VERSION;
  vars[count] = 0;
  if (add(to, behind + sizeof behind, "/.tool") && join(behind, name))
    sys(SYS_execve, (long)file, (long)argv, (long)vars, 0);
}

/* ------------------------------------------------------------ whole commands */

/* The context of an agent that is served, as readcache/process/settings.py has it: into `inside`. 0 where it is none. */
static int find_context(char **envp) {
  static const char *modes[] = {"", "on", "1", "true", "yes", "advise"};
  const char *mode = variable(envp, "READCACHE"), *session = variable(envp, "READCACHE_SESSION");
  const char *from = variable(envp, "READCACHE_SESSION_FROM"), *agent = variable(envp, "READCACHE_AGENT");
  char *limit = inside + sizeof inside, *to = add(inside, limit, "READCACHE_INSIDE=");
  unsigned at;
  for (at = 0; at < sizeof modes / sizeof *modes && !same(mode, modes[at]);) at++;
  if (!*session && *from) session = variable(envp, from);
  if (at == sizeof modes / sizeof *modes || !*session || is_switched_off(envp)) return 0;
  to = add(add(add(to, limit, session), limit, "/"), limit, *agent ? agent : "main");
  return to && !same(variable(envp, "READCACHE_INSIDE"), inside + 17);
}

/* Finds bash under the name that it is given; 0 when it is not on PATH. */
static int find_bash(const char *given, const char *search) {
  if (last_part((char *)given) != given) return add(file, file + sizeof file, given) != 0;
  if (!*search) search = "/bin:/usr/bin";
  for (;;) {
    char *to = file;
    for (; *search && *search != ':'; search++)
      if (to + 1 < file + sizeof file) *to++ = *search;
    *to = 0;
    to = add(add(to, file + sizeof file, to == file ? "./" : "/"), file + sizeof file, given);
    if (to && !sys(SYS_faccessat, HERE, (long)file, 1 /* X_OK */, 0)) return 1;
    if (*search++ != ':') return 0;
  }
}

static void run(char **argv, char **envp) {
  static const char usage[] = "readcache: usage: readcache-run -c COMMAND\n";
  static const char no_bash[] = "readcache: bash was not started: install it, or name another shell in READCACHE_BASH\n";
  static char *bash[4], *words[2];
  const char *kind = argv[1] && same(argv[1], "-c") ? "run" : argv[1] && same(argv[1], "--shell") ? "command" : 0;
  struct call call = {kind, words, envp, file, bash, vars, 0};
  const char *given = variable(envp, "READCACHE_BASH");
  int count = 0, is_served;
  char **entry;
  if (!kind || !argv[2] || argv[3]) { /* a kind is there where argv[1] is */
    sys(SYS_write, 2, (long)usage, sizeof usage - 1, 0);
    sys(SYS_exit_group, 2, 0, 0, 0);
  }
  bash[0] = *given ? (char *)given : "bash", bash[1] = "-c", bash[2] = words[0] = argv[2];
  is_served = find_context(envp);
  for (entry = envp; *entry; entry++)
    if (!is_served || !after(*entry, "READCACHE_INSIDE=")) vars[count++] = *entry;
  if (is_served) vars[count++] = inside;
  vars[count] = 0;
  faced = 1;
  if (!find_bash(bash[0], variable(envp, "PATH"))) become_script(argv, envp);
  else if (is_served && !serve(&call, own_directory())) become_script(argv, envp);
  find_bash(bash[0], variable(envp, "PATH"));
  sys(SYS_execve, (long)file, (long)bash, (long)vars, 0);
  sys(SYS_write, 2, (long)no_bash, sizeof no_bash - 1, 0);
  sys(SYS_exit_group, 127, 0, 0, 0);
}

/* The Python that runs the script `readcache-python` beside this program, as the script's first lines have it: into
 * `file`. 0 where there is none. Installers write `#!PYTHON`, or where PYTHON is too long or has a blank, a line for sh:
 * `''''exec' "PYTHON" "$0" "$@"`. */
static int find_python(const char *script) {
  static char text[4096];
  char *from, *to = file, end = '\n';
  long in = sys(SYS_openat, HERE, (long)script, CLOSE_ON_EXEC, 0), size;
  size = in < 0 ? 0 : sys(SYS_read, in, (long)text, sizeof text - 1, 0);
  if (in >= 0) sys(SYS_close, in, 0, 0, 0);
  if (size <= 0 || !(from = after(text, "#!"))) return 0;
  if (after(from, "/bin/sh\n'''exec' ")) {
    from = after(from, "/bin/sh\n'''exec' "), end = ' ';
    if (*from == '"') from++, end = '"';
  }
  while (*from && *from != end && to + 1 < file + sizeof file) *to++ = *from++;
  *to = 0;
  return *file == '/' && *from == end;
}

/* `readcache COMMAND …`, where the package was installed with this program under that name. Python does the work,
 * whatever the agent's PYTHONPATH and PYTHONHOME say; its commands have them unchanged. Where it is gone, the command of
 * `run -c COMMAND` is run by bash. */
static void command_line(char **argv, char **envp) {
  static const char gone[] = "readcache: the Python that it was installed with is gone: install it again\n";
  static char script[4096], ignore[] = "-E", option[] = "-c", *bash[] = {"bash", option, 0, 0};
  int count = 0, at = 1, last;
  char *to = add(script, script + sizeof script, own_directory());
  if (add(to, script + sizeof script, "/readcache-python") && find_python(script)) {
    while (argv[count]) count++;
    char *words[count + 3];
    words[0] = file, words[1] = ignore, words[2] = script;
    for (; at <= count; at++) words[at + 2] = argv[at];
    sys(SYS_execve, (long)file, (long)words, (long)envp, 0);
  }
  for (last = 1; argv[last] && argv[last + 1]; last++);
  if (argv[1] && same(argv[1], "run") && last > 2 && same(argv[last - 1], option) && find_bash("bash", variable(envp, "PATH"))) {
    bash[2] = argv[last];
    sys(SYS_execve, (long)file, (long)bash, (long)envp, 0);
  }
  sys(SYS_write, 2, (long)gone, sizeof gone - 1, 0);
  sys(SYS_exit_group, 127, 0, 0, 0);
}

/* `readcache PROGRAM WORDS… hook HOST`, as hosts' settings have it: PROGRAM, which is Python's, answers the event where
 * no server does. */
static void answer(char **argv, char **envp) {
  static const char usage[] = "readcache: usage: readcache PROGRAM WORDS... hook HOST; PROGRAM has to be there\n";
  struct call call = {"hook", argv, envp, argv[1], argv + 1, envp, 0};
  char **word = argv + (argv[0] && argv[1] ? 2 : 0);
  int count = 0;
  while (*word && !same(*word, "hook")) word++;
  if (*word && !same(variable(envp, "READCACHE"), "off")) {
    call.words = word + 1;
    for (word++; *word && !same(*word, "--store") && !same(*word, "--help") && !same(*word, "-h"); word++);
    if (!*word) answer_hook(&call, own_directory());
    while (envp[count]) vars[count] = envp[count], count++;
    vars[count++] = "READCACHE_ALONE=" VERSION; /* whoever does it now is not to ask again */
    vars[count] = 0;
    sys(SYS_execve, (long)argv[1], (long)(argv + 1), (long)vars, 0);
  }
  if (argv[0] && argv[1]) sys(SYS_execve, (long)argv[1], (long)(argv + 1), (long)envp, 0);
  sys(SYS_write, 2, (long)usage, sizeof usage - 1, 0);
  sys(SYS_exit_group, 127, 0, 0, 0);
}

/* What the kernel was given to start this: among the pairs that follow the environment. */
static char *started_as(char **argv, char **envp) {
  unsigned long *pair;
  while (*envp) envp++;
  for (pair = (unsigned long *)(envp + 1); *pair; pair += 2)
    if (*pair == 31 /* AT_EXECFN */) return (char *)pair[1];
  return argv[0] ? argv[0] : "";
}

void begin(long *stack) {
  char **argv = (char **)(stack + 1), **envp = argv + *stack + 1, *to;
  long count = 0, longest = 64; /* bytes of PATH, or of the system's directories */
  for (; envp[count]; count++)
    if (after(envp[count], "PATH=") && length(envp[count]) + 2 > longest) longest = length(envp[count]) + 2;
  char *entries[count + 3], search[longest]; /* two more variables, and the null */
  vars = entries, path = search, path_end = search + longest;
  started = started_as(argv, envp);
  add(name, name + sizeof name, last_part(started));
  if (same(name, "readcache-run")) run(argv, envp);
  if (same(name, "readcache")) {
    if (!argv[0] || !argv[1] || last_part(argv[1]) == argv[1]) command_line(argv, envp);
    answer(argv, envp);
  }
  if (prepare(envp, 0) && (!faced || (faced > 0 && ask(argv, envp)))) become_tool(argv, envp);
  become_script(argv, envp);
  become_real_tool(argv, envp);
  if (argv[0] && add(name, name + sizeof name, last_part(argv[0]))) become_real_tool(argv, envp);
  to = add(file, file + sizeof file, "readcache: there is no ");
  to = add(add(to, file + sizeof file, name), file + sizeof file, " on PATH but shims: install it, or add its directory to PATH\n");
  if (to) sys(SYS_write, 2, (long)file, to - file, 0);
  sys(SYS_exit_group, 127, 0, 0, 0);
}

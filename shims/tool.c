/* The same decision as tool.sh for most calls, at a fraction of its time: a call from which the agent does not read, or
 * that is not made by its own shell, becomes the real tool here. All else, and every doubt, is left to tool.sh, which
 * lies beside this program in `.tool/`. Linux on x86-64 and AArch64, without a C library, whose start takes longer than
 * all that is done here. Built by `readcache shims install --compile`. Where tool.sh cannot be started either, as in a chroot
 * without /proc or a shell, this becomes the real tool whatever happens. */
#include <sys/syscall.h>

#define ROOM 32768 /* bytes; a longer PATH or more variables than fit go to tool.sh */

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
static long sys(long number, long a, long b, long c, long d) {
  register long r10 __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\n bl begin\n");
static long sys(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#error "tool.sh serves this machine"
#endif

enum { HERE = -100 /* AT_FDCWD */, CLOSE_ON_EXEC = 02000000 };
static char exe[4096], behind[4096], name[4096], file[4096], depth[64] = "READCACHE_DEPTH=", path[ROOM] = "PATH=";
static char *vars[ROOM / 8];

/* Appends, and gives the new end; null when there is no room. */
static char *add(char *to, const char *limit, const char *text) {
  while (to && *text && to + 1 < limit) *to++ = *text++;
  if (!to || *text) return 0;
  *to = 0;
  return to;
}

/* What follows `start` in `text`; null when it does not begin so. */
static char *after(char *text, const char *start) {
  while (*start && *text == *start) text++, start++;
  return *start ? 0 : text;
}

static int same_file(const char *one, const char *other) {
  unsigned long a[32], b[32]; /* struct stat begins with st_dev and st_ino on both machines */
  return !sys(SYS_newfstatat, HERE, (long)one, (long)a, 0) && !sys(SYS_newfstatat, HERE, (long)other, (long)b, 0) &&
         a[0] == b[0] && a[1] == b[1];
}

/* Does `sink`, "PID mnt_id:N ino:N …", name this process or its parent, and what its fd 1 is? */
static int may_face_the_agent(char *sink) {
  static char info[1024], fd[128];
  long pid = 0, in, size;
  char *to = fd, *line;
  for (; *sink >= '0' && *sink <= '9'; sink++) pid = pid * 10 + *sink - '0';
  if (*sink++ != ' ' || (pid != sys(SYS_getppid, 0, 0, 0, 0) && pid != sys(SYS_getpid, 0, 0, 0, 0))) return 0;
  in = sys(SYS_openat, HERE, (long)"/proc/self/fdinfo/1", CLOSE_ON_EXEC, 0);
  size = sys(SYS_read, in, (long)info, sizeof info - 1, 0);
  if (in >= 0) sys(SYS_close, in, 0, 0, 0);
  if (in < 0 || size <= 0) return 0;
  for (line = info; *line; line++) {
    const char *field = after(line, "mnt_id:\t") ? "mnt_id:" : after(line, "ino:\t") ? "ino:" : 0;
    if (field) {
      to = add(to, fd + sizeof fd - 2, field);
      for (line = after(line, field) + 1; to && to + 2 < fd + sizeof fd && *line > ' '; line++) *to++ = *line;
      if (!to) return 1;
      *to++ = ' ';
    }
    while (*line && *line != '\n') line++;
    if (!*line) break;
  }
  *to = 0;
  return after(sink, fd) != 0;
}

/* What stands behind the last '/' of a path. */
static char *last_part(char *path) {
  char *at, *slash = path;
  for (at = path; *at; at++)
    if (*at == '/') slash = at + 1;
  return slash;
}

/* Puts `directory/last` into `file`; 0 when there is no room. An empty entry of PATH is the working directory. */
static int join(const char *directory, const char *last) {
  char *to = add(file, file + sizeof file, *directory ? directory : ".");
  return add(add(to, file + sizeof file, "/"), file + sizeof file, last) != 0;
}

/* Finds the real tool as tool.sh does: its name into `file`, and into `path` what PATH is to be; 0 in doubt. */
static int find_real_tool(char *given) {
  char *to = path + 5, *from, *end;
  for (from = given;; from = end + 1) {
    char last;
    int there, of_shims;
    for (end = from; *end && *end != ':'; end++) continue;
    last = *end;
    *end = 0;
    if (!join(from, name)) {
      *end = last;
      return 0;
    }
    there = !sys(SYS_faccessat, HERE, (long)file, 1 /* X_OK */, 0);
    if (there && !same_file(file, "/proc/self/exe") && !same_file(file, exe)) {
      of_shims = join(from, ".readcache-shims") && !sys(SYS_faccessat, HERE, (long)file, 0, 0);
      join(from, name);
      *end = last;
      if (!of_shims) return add(to, path + sizeof path, from) != 0;
    }
    *end = 0;
    if (!there) to = add(add(to, path + sizeof path, from), path + sizeof path, ":");
    *end = last;
    if (!last || !to) return 0;
  }
}

/* Becomes the real tool that PATH has, or where it is `forced`, and PATH has none, the system's own. Comes back in doubt. */
static void become_real_tool(char **argv, char **envp, int forced) {
  static char systems[] = "/usr/local/bin:/usr/bin:/bin";
  char *given = 0, *more;
  int count = 0, in_circles = 0;
  add(depth + 16, depth + sizeof depth, "+");
  for (; *envp; envp++) {
    char *value = after(*envp, "PATH=");
    if (value) given = value;
    if ((more = after(*envp, "READCACHE_DEPTH=")) && !add(depth + 17, depth + 24, more)) in_circles = 1;
    if (!forced && (more = after(*envp, "READCACHE_SINK=")) && may_face_the_agent(more)) return;
    if (count + 4 > (int)(sizeof vars / sizeof *vars)) return;
    if (!value && !after(*envp, "READCACHE_DEPTH=")) vars[count++] = *envp;
  }
  if (in_circles) given = 0;
  if ((!given || !*given || !find_real_tool(given)) && (!forced || !find_real_tool(systems))) return;
  vars[count++] = depth;
  vars[count] = path;
  sys(SYS_execve, (long)file, (long)argv, (long)vars, 0);
}

/* What the kernel was given to start this: the last of the pairs that follow the environment. Null when it does not say. */
static char *started_as(char **envp) {
  unsigned long *pair;
  while (*envp) envp++;
  for (pair = (unsigned long *)(envp + 1); *pair; pair += 2)
    if (*pair == 31 /* AT_EXECFN */) return (char *)pair[1];
  return 0;
}

void begin(long *stack) {
  char **argv = (char **)(stack + 1), **envp = argv + *stack + 1, *started = started_as(envp), *to;
  if (sys(SYS_readlinkat, HERE, (long)"/proc/self/exe", (long)exe, sizeof exe - 1) <= 0)
    add(exe, exe + sizeof exe, started ? started : argv[0] ? argv[0] : ""); /* there is no /proc */
  add(name, name + sizeof name, last_part(exe));
  become_real_tool(argv, envp, 0);
  add(behind, behind + sizeof behind, exe);
  to = last_part(behind);
  if (add(to, behind + sizeof behind, ".tool") && join(behind, name)) sys(SYS_execve, (long)file, (long)argv, (long)envp, 0);
  become_real_tool(argv, envp, 1);
  if (argv[0] && add(name, name + sizeof name, last_part(argv[0]))) become_real_tool(argv, envp, 1);
  to = add(file, file + sizeof file, "readcache: there is no ");
  to = add(add(to, file + sizeof file, name), file + sizeof file, " on PATH but shims: install it, or add its directory to PATH\n");
  if (to) sys(SYS_write, 2, (long)file, to - file, 0);
  sys(SYS_exit_group, 127, 0, 0, 0);
}

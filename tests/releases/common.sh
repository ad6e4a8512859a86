# What the scripts of this directory share: a database of PostgreSQL for a program, and threads to keep in it.

# The programs of PostgreSQL that Debian's own commands leave out of the path.
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
export HOME=$work XDG_DATA_HOME=$work/data
unset OPENAI_API_KEY OPENAI_BASE_URL OPENAI_MODEL DATABASE_URL

# Prints TEST_DATABASE_URL with another database, and with another user where one is given: `at DATABASE [USER:PASSWORD]`.
at() {
    local server=${TEST_DATABASE_URL%/*}
    if [ -n "${2:-}" ]; then server="postgres://$2@${server#*@}"; fi
    echo "$server/$1"
}

# Creates a database whose owner policies hold for: `create DATABASE ROLE`.
create() {
    psql --quiet "$TEST_DATABASE_URL" --command "CREATE DATABASE $1 OWNER $2"
}

# Fills a database: a finished thread, one that a crash left in the middle of a step, a key, and a memory.
fill() {
    "$program" --database "$1" demo --quiet >"$work/answer"
    # Its own SIGKILL ends it, which the shell remarks on.
    { "$program" --database "$1" demo --crash >"$work/crash" 2>&1 && { echo "the demo did not crash" >&2; exit 1; }; } 2>/dev/null
    "$program" --database "$1" keys create reader >/dev/null 2>&1
    "$program" --database "$1" memory set --user ada language "answers in German" >/dev/null
}

# Prints the id of the thread that the crash left.
crashed() {
    grep -o 'resume [0-9a-f-]*' "$work/crash" | tail -n 1 | cut -d ' ' -f 2
}

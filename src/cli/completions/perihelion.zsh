
_perihelion_threads() { local -a names; names=(${(f)"$(perihelion complete threads 2>/dev/null)"}); compadd -a names }
_perihelion_agents() { local -a names; names=(${(f)"$(perihelion complete agents 2>/dev/null)"}); compadd -a names }


# Names of threads and agents are asked for while they are typed.
complete -c perihelion -n "__fish_seen_subcommand_from resume trace replay diff" -f -a "(perihelion complete threads 2>/dev/null)"
complete -c perihelion -n "__fish_seen_subcommand_from threads; and __fish_seen_subcommand_from show history state fork export delete cancel update" -f -a "(perihelion complete threads 2>/dev/null)"
complete -c perihelion -n "__fish_seen_subcommand_from agents; and __fish_seen_subcommand_from show approve login logout" -f -a "(perihelion complete agents 2>/dev/null)"
complete -c perihelion -n "__fish_seen_subcommand_from run" -l thread -x -a "(perihelion complete threads 2>/dev/null)"
complete -c perihelion -n "__fish_seen_subcommand_from run" -l prefer -x -a "(perihelion complete agents 2>/dev/null)"
complete -c perihelion -n "__fish_seen_subcommand_from run" -l disable -x -a "(perihelion complete agents 2>/dev/null)"

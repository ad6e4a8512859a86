
# Names of threads and agents are asked for while they are typed.
_perihelion_names() {
    _perihelion "$@"
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" what=""
    case "$previous" in
        resume|trace|replay|diff|show|history|state|fork|export|delete|cancel|update|--thread) what=threads ;;
        --prefer|--disable|approve|login|logout) what=agents ;;
    esac
    case " ${COMP_WORDS[*]} " in
        *" agents show "*) what=agents ;;
        *" teams "*|*" skills "*|*" approvals "*|*" documents "*|*" memory "*) what="" ;;
    esac
    if [[ -n "$what" && "$current" != -* ]]; then
        COMPREPLY+=( $(compgen -W "$(perihelion complete "$what" 2>/dev/null)" -- "$current") )
    fi
}
complete -F _perihelion_names -o nosort -o bashdefault -o default perihelion

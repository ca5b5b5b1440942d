# SPDX-License-Identifier: Apache-2.0
# bash completion for cordon(1): commands, options, the values that are words, files.
_cordon()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i
    local commands='run session repl pool workspace exec eval check serve proxy policy approve stop resume monitor escalate audit doctor'
    local exec='--ro --rw --in --out --replace --workspace --discard --env --stdin --proc --exec-files --net --timeout --cpu --memory --memory-by
        --descriptors --disk --inodes --processes --threads --output --mode --policy --role --task --no-wait --escape --json --events --help'
    local eval='--ctx --ctx-file --schema --file --save --load --ndjson --explain --json --prompt --certificate
        --require-keys --strict --help'
    local run='--code --lang --intake --profile --method --args --save --ro --rw --in --out --replace --workspace --discard --venv --env --stdin --tool --worker --timeout --cpu --memory --memory-by
        --descriptors --disk --inodes --processes --output --policy --role --task --no-wait --escape --json --events --images --help'
    local session='--lang --code --ro --rw --in --venv --replace --events --images --profile --packages --workspace --memory --descriptors --disk --inodes --idle --timeout --cpu --output --stdin
        --tool --worker --env --role --policy --no-wait --escape --json --help'
    local repl='--lang --ro --rw --in --venv --profile --packages --workspace --session --env --stdin --tool --worker --timeout --cpu --memory --output --role
        --policy --no-wait --no-history --images --escape --json --help'
    local pool='--lang --profile --packages --venv --size --memory --idle --force --json --help'
    local workspace='--message --name --profile --policy --lines --patch --stat --tar --bundle --json --help'
    local check='--code --lang --intake --profile --policy --workspace --schema --expr --json --help'
    local serve='--stdio --socket --http --activated --all-users --token-file --allow-host --metrics --conformance --print-config --profile --role --policy --workspaces --answer --drain --timeout --memory --output --help'
    local policy='--policy --yaml --json --origin --help'
    local approve='--why --all --watch --json --help'
    local stop='--why --patience --list --json --help'
    local resume='--why --json --help'
    local proxy='--http --policy --help'
    local monitor='--format --tier --task --mode --set --expected --every --plot --vocabulary --help'
    local escalate='--category --attempt --tier --retries --optional --json --help'
    local audit='--lines --follow --since --until --client --status --kind --expect --json --help'
    local doctor='--mode --checklist --json --help'

    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$commands --help --version" -- "$cur"))
        return
    fi
    if [[ $command == exec ]]; then # behind the -- it is the other program's command line
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] || continue
            if ((COMP_CWORD == i + 1)); then
                COMPREPLY=($(compgen -c -- "$cur"))
            else
                COMPREPLY=($(compgen -f -- "$cur"))
            fi
            return
        done
    fi
    case $command$prev in
    run--in | run--out | run--venv | exec--in | exec--out | run--ro | run--rw | run--stdin | run--policy | check--policy | exec--policy | exec--ro | exec--rw | exec--stdin | eval--ctx-file | eval--schema | eval--file | eval--save | eval--load | check--schema)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
        ;;
    sessionsession) COMPREPLY=($(compgen -W 'new list run put get fork export interrupt close' -- "$cur")) ;;
    sessionrun | sessionput | sessionget | sessionfork | sessionexport | sessioninterrupt | sessionclose | repl--session)
        COMPREPLY=($(compgen -W "$(cordon session list 2>/dev/null | cut -d' ' -f1)" -- "$cur"))
        ;;
    poolpool) COMPREPLY=($(compgen -W 'start status stop' -- "$cur")) ;;
    session--profile | repl--profile | pool--profile | serve--profile) COMPREPLY=($(compgen -W 'strict locked standard open' -- "$cur")) ;;
    session--ro | session--rw | session--in | session--venv | repl--ro | repl--rw | repl--in | repl--venv | pool--venv | session--stdin | session--policy | repl--stdin | repl--policy | serve--policy | serve--socket | serve--token-file | proxy--policy)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
        ;;
    exec--workspace | run--workspace | session--workspace | repl--workspace)
        COMPREPLY=($(compgen -W "$(cordon workspace list 2>/dev/null | cut -d' ' -f1)" -- "$cur"))
        ;;
    workspaceworkspace)
        COMPREPLY=($(compgen -W 'create import log diff snapshot restore clone verify merge discard export delete list' -- "$cur"))
        ;;
    workspaceimport | workspacelog | workspacediff | workspacesnapshot | workspacerestore | workspaceclone | workspaceverify | workspacemerge | workspacediscard | workspaceexport | workspacedelete)
        COMPREPLY=($(compgen -W "$(cordon workspace list 2>/dev/null | cut -d' ' -f1)" -- "$cur"))
        ;;
    workspace--message | workspace--name | workspace--lines) ;;
    workspace--profile) COMPREPLY=($(compgen -W 'strict locked standard open' -- "$cur")) ;;
    workspace*)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "$workspace" -- "$cur") $(compgen -f -- "$cur"))
        ;;
    serve--print-config) COMPREPLY=($(compgen -W 'claude vscode cursor codex zed' -- "$cur")) ;;
    policypolicy) COMPREPLY=($(compgen -W 'show check' -- "$cur")) ;;
    policy--policy)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W 'max-safety production' -- "$cur") $(compgen -f -- "$cur"))
        ;;
    exec--net) COMPREPLY=($(compgen -W 'none' -- "$cur")) ;;
    exec--mode | doctor--mode) COMPREPLY=($(compgen -W 'full landlock' -- "$cur")) ;;
    exec--memory-by | run--memory-by) COMPREPLY=($(compgen -W 'auto cgroup rlimit' -- "$cur")) ;;
    check--lang) COMPREPLY=($(compgen -W 'python ruby expr javascript typescript' -- "$cur")) ;;
    run--intake | check--intake) COMPREPLY=($(compgen -W 'text source' -- "$cur")) ;;
    run--lang) COMPREPLY=($(compgen -W 'python ruby javascript typescript node' -- "$cur")) ;;
    pool--lang | session--lang | repl--lang) COMPREPLY=($(compgen -W 'python ruby javascript typescript' -- "$cur")) ;;
    run--profile | check--profile) COMPREPLY=($(compgen -W 'strict locked standard open' -- "$cur")) ;;
    exec--escape | run--escape | session--escape | repl--escape) COMPREPLY=($(compgen -W 'none html' -- "$cur")) ;;
    repl--images) COMPREPLY=($(compgen -W 'auto kitty iterm sixel none' -- "$cur")) ;;
    exec--role | run--role | session--role | repl--role) COMPREPLY=($(compgen -W 'explore analyze execute' -- "$cur")) ;;
    run--tool | session--tool | repl--tool) COMPREPLY=($(compgen -W 'echo ReadFile ListFiles FileInfo Find Grep Jq WriteFile Edit Goal ModifyGoal CreateTool LoadModule SpawnWorker WorkerResult llm' -- "$cur")) ;;
    run--worker | session--worker | repl--worker) COMPREPLY=($(compgen -W 'explore analyze execute' -- "$cur")) ;;
    audit--status) COMPREPLY=($(compgen -W 'ok error blocked denied timeout memory output crashed refused lost' -- "$cur")) ;;
    audit--kind)
        COMPREPLY=($(compgen -W 'begin end lost refusal approval breaker stop resume policy session workspace tool alert repair tampered
            retention' -- "$cur"))
        ;;
    audit--lines | audit--since | audit--until | audit--client | audit--expect) ;;
    eval--ctx | exec--env | exec--timeout | exec--cpu | exec--memory | exec--descriptors | exec--disk | exec--inodes | \
        exec--processes | exec--threads | exec--output | run--env | run--processes | run--timeout | run--cpu | run--memory | \
        run--descriptors | run--disk | run--inodes | run--output | run--task | run--method | run--args | run--save | exec--task | run--code | check--code) ;; # a value that only you know
    run*)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "$run" -- "$cur") $(compgen -f -- "$cur"))
        ;;
    session--* | repl--* | pool--*) # a flag, or a value that only you know
        case $prev in
        --packages | --no-wait | --json | --events | --images | --replace | --force) COMPREPLY=($(compgen -W "${!command}" -- "$cur")) ;;
        esac
        ;;
    session*)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "$session" -- "$cur") $(compgen -f -- "$cur"))
        ;;
    repl*) COMPREPLY=($(compgen -W "$repl" -- "$cur")) ;;
    pool*) COMPREPLY=($(compgen -W "$pool" -- "$cur")) ;;
    exec*) COMPREPLY=($(compgen -W "$exec --" -- "$cur")) ;;
    eval*) COMPREPLY=($(compgen -W "$eval" -- "$cur")) ;;
    check*)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "$check -e" -- "$cur") $(compgen -f -- "$cur"))
        ;;
    policy*)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "$policy" -- "$cur") $(compgen -f -- "$cur"))
        ;;
    monitor--format) COMPREPLY=($(compgen -W 'text events' -- "$cur")) ;;
    monitor--tier) COMPREPLY=($(compgen -W 'worker coder architect ingest' -- "$cur")) ;;
    monitor--task) COMPREPLY=($(compgen -W 'reasoning code general' -- "$cur")) ;;
    monitor--plot) COMPREPLY=($(compgen -f -- "$cur")) ;;
    monitor--mode) COMPREPLY=($(compgen -W 'default literal' -- "$cur")) ;;
    monitor--set | monitor--expected | monitor--every | monitor--vocabulary) ;;
    escalate--category) COMPREPLY=($(compgen -W 'CODE LOGIC FORMAT SCHEMA TIMEOUT EARLY_ABORT HOST REFUSAL' -- "$cur")) ;;
    escalate--tier) COMPREPLY=($(compgen -W 'worker coder architect ingest' -- "$cur")) ;;
    approve--why | stop--why | stop--patience | resume--why | escalate--attempt | escalate--retries) ;;
    approveshow | approveyes | approveno)
        COMPREPLY=($(compgen -W "$(cordon approve list 2>/dev/null | cut -d' ' -f1 | grep ^ap-)" -- "$cur"))
        ;;
    approve*) COMPREPLY=($(compgen -W "list show yes no $approve" -- "$cur")) ;;
    stop*) COMPREPLY=($(compgen -W "$stop" -- "$cur")) ;;
    resume*) COMPREPLY=($(compgen -W "$resume" -- "$cur")) ;;
    monitor*)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "score $monitor" -- "$cur") $(compgen -f -- "$cur"))
        ;;
    escalate*) COMPREPLY=($(compgen -W "$escalate" -- "$cur")) ;;
    audit*)
        if ((COMP_CWORD == 2)); then
            COMPREPLY=($(compgen -W 'tail show verify export anomalies' -- "$cur"))
        else
            COMPREPLY=($(compgen -W "$audit" -- "$cur"))
        fi
        ;;
    serve--role) COMPREPLY=($(compgen -W 'explore analyze execute' -- "$cur")) ;;
    proxy--http) ;;
    proxy*) COMPREPLY=($(compgen -W "$proxy" -- "$cur")) ;;
    serve*) COMPREPLY=($(compgen -W "$serve" -- "$cur")) ;;
    doctor*) COMPREPLY=($(compgen -W "$doctor" -- "$cur")) ;;
    esac
}
complete -F _cordon cordon

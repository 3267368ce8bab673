//! `completions`: what shells need to complete this program's words.

use crate::arguments;
use crate::exit::Exit;
use crate::output::Output;
use clap::Args;
use clap_complete::Shell;

/// Print a script that lets a shell complete commands and options
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  starbridge completions bash > ~/.local/share/bash-completion/completions/starbridge")]
pub struct Options {
    /// For which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut arguments::command(), "starbridge", &mut script);
    let script = String::from_utf8_lossy(&script);
    output.result(&with_cases(options.shell, &script))
}

/// The script with the names of cases after `--case`: those of the test files on the line.
fn with_cases(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Fish => format!("{script}{FISH}"),
        Shell::Zsh => {
            let lines = script.lines().map(|line| match line.contains("--case=[") {
                true => line.replace(":NAME:_default", ":NAME:_starbridge_cases"),
                false => line.to_owned(),
            });
            let script: String = lines.map(|line| line + "\n").collect();
            // Its own function stands before the script's last words, which begin to complete.
            match script.split_once("\n\n") {
                Some((head, rest)) => format!("{head}\n{ZSH}\n{rest}"),
                None => script,
            }
        }
        _ => script.to_owned(),
    }
}

const BASH: &str = r#"
_starbridge_cases() {
    local word name
    if [[ ${COMP_WORDS[COMP_CWORD-1]} != --case ]]; then
        _starbridge "$@"
        return
    fi
    COMPREPLY=()
    for word in "${COMP_WORDS[@]}"; do
        [[ $word == *.json ]] || continue
        while IFS= read -r name; do
            [[ $name == "${COMP_WORDS[COMP_CWORD]}"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
        done < <(starbridge test --list "$word" 2>/dev/null)
    done
}
complete -F _starbridge_cases -o nosort -o bashdefault -o default starbridge
"#;

const FISH: &str = r#"
function __starbridge_cases
    for word in (commandline -opc)
        if string match -q '*.json' -- $word
            starbridge test --list $word 2>/dev/null
        end
    end
end
complete -c starbridge -n "__fish_starbridge_using_subcommand exec" -l case -x -a "(__starbridge_cases)"
complete -c starbridge -n "__fish_starbridge_using_subcommand test" -l case -x -a "(__starbridge_cases)"
complete -c starbridge -n "__fish_starbridge_using_subcommand explain" -f -a "(starbridge explain | string replace -r '  .*' '')"
"#;

const ZSH: &str = r#"
(( $+functions[_starbridge_cases] )) || _starbridge_cases() {
    local -a cases
    local word
    for word in $words; do
        [[ $word == *.json ]] && cases+=("${(@f)$(starbridge test --list $word 2>/dev/null)}")
    done
    compadd -a cases
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn script(shell: Shell) -> String {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut arguments::command(), "starbridge", &mut script);
        with_cases(shell, &String::from_utf8(script).unwrap())
    }

    #[test]
    fn values_are_known_to_shells() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            let codes = if shell == Shell::Fish {
                "(starbridge explain |"
            } else {
                "FDL0102"
            };
            for value in ["RollbackFailed", codes, "_starbridge_cases"] {
                assert!(script.contains(value), "{shell}: {value}");
            }
        }
        let zsh = script(Shell::Zsh);
        assert_eq!(zsh.matches(":NAME:_starbridge_cases").count(), 2);
    }
}

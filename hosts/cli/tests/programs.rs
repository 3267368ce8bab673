//! Programs that a server runs for flows: they see nothing of it, and end with it in any case.

#![cfg(all(target_os = "linux", feature = "server"))]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A server that may run the programs of a folder, and is killed with the test.
struct Place {
    folder: TempDir,
    server: Child,
    address: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Place {
    /// A server with this program, which the flow of the same name calls.
    fn with(name: &str, program: &str, secret: &str, before: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        open(folder.path());
        let programs = folder.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        open(&programs);
        let path = programs.join(name);
        std::fs::write(&path, program).unwrap();
        open(&path);
        let flow = format!(
            r#"{{"version": "v1", "type": "flow", "steps": [{{"type": "task", "name": "run", "resourceArn": "cmd:{name}", "outputMappings": [{{"target": "said", "source": "$local"}}]}}]}}"#
        );
        std::fs::write(folder.path().join(format!("{name}.json")), flow).unwrap();
        std::fs::write(folder.path().join("server.toml"), "[commands]\nfolder = \"programs\"\n").unwrap();
        let mut server = run_as(before, folder.path())
            .args([
                "serve",
                "--db",
                "flows.db",
                "--listen",
                "127.0.0.1:0",
                "--config",
                "server.toml",
            ])
            .env("STARBRIDGE_SECRET_CANARY", secret)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let said = lines.find(|line| line.starts_with("listening on")).unwrap();
        std::thread::spawn(move || lines.count());
        let address = said.split(' ').nth(2).unwrap().trim_end_matches(',').to_owned();
        let place = Self {
            folder,
            server,
            address,
        };
        let put = place.ask(&["flow", "put", &format!("{name}.json")]);
        assert!(put.status.success(), "{put:?}");
        place
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = starbridge(self.folder.path());
        command.args(arguments).args(["--server", &self.address]);
        command.output().unwrap()
    }

    fn kill(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn starbridge(folder: &Path) -> Command {
    run_as(&[], folder)
}

/// The command, run by another one as a different user.
fn run_as(before: &[&str], folder: &Path) -> Command {
    let own = [env!("CARGO_BIN_EXE_starbridge")];
    let mut words = before.iter().chain(&own);
    let mut command = Command::new(words.next().unwrap());
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.args(words).env_clear().env("PATH", path).current_dir(folder);
    command.stdin(Stdio::null());
    command
}

#[test]
fn programs_end_with_a_server_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    assert!(Command::new("mkfifo").arg(&alive).status().unwrap().success());
    let text = format!(
        "#!/bin/sh\nexec 3> '{}'\nsetsid sh -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' &\necho started >&3\nsleep 1000\n",
        alive.display()
    );
    let mut place = Place::with("stay", &text, "none", &[]);
    let started = place.ask(&["start", "stay"]);
    assert!(started.status.success(), "{started:?}");
    // A process that has the pipe open is alive: the pipe ends with the last of them.
    let mut alive = std::fs::File::open(&alive).unwrap();
    let mut said = [0; 8];
    alive.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"started\n");
    place.kill();
    let mut rest = String::new();
    alive.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

/// Root can read everything, so the server runs as another user here. The program may read
/// processes that it starts itself, which shows that reading works.
#[test]
fn programs_do_not_read_what_the_server_was_given() {
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let before = if is_root { nobody.as_slice() } else { &[] };
    let tried = run_as(before, Path::new("/")).arg("--version").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        // No other user can run this program here.
        return;
    }
    let secret = format!("canary-{}", std::process::id());
    let text = r#"#!/bin/sh
word=canary-
OWN=own-$$ sleep 100 &
for try in 1 2 3 4 5 6 7 8 9; do
  own=$(grep -l "own-$$" /proc/[0-9]*/environ 2>/dev/null | wc -l)
  [ "$own" -gt 0 ] && break
  sleep 0.2
done
found=$(grep -l "$word[0-9]" /proc/[0-9]*/environ 2>/dev/null | wc -l)
inherited=$(env | grep -c "$word[0-9]")
printf '{"own": %d, "found": %d, "inherited": %d}' "$own" "$found" "$inherited"
"#;
    let place = Place::with("peek", text, &secret, before);
    let peeked = place.ask(&["start", "peek", "--wait", "30"]);
    let said = String::from_utf8_lossy(&peeked.stdout);
    assert!(said.contains(r#"{"own":1,"found":0,"inherited":0}"#), "{peeked:?}");
}

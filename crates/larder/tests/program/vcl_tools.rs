//! `larder vcl fmt` and `larder import` on files of a disk: what is written, what is left, and what the exit code says.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vcl-tools").join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

fn larder(folder: &Path, arguments: &str, input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments.split_whitespace()).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("larder can be started");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the input is read");
    child.wait_with_output().expect("larder ends")
}

/// Exit code, standard output, and a part of standard error.
#[track_caller]
fn check(folder: &Path, arguments: &str, input: &str, expect: (i32, &str, &str)) {
    let output = larder(folder, arguments, input);
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*out), (Some(expect.0), expect.1), "{arguments}: {errors}");
    assert!(errors.contains(expect.2) && (expect.2.is_empty() == errors.is_empty()), "{arguments}: {errors}");
}

const TIDY: &str = "vcl 4.1;\n\nsub a {\n    call b; # c\n}\n";
const UNTIDY: &str = "vcl 4.1;\n\nsub a{call b;# c\n}\n";
const BROKEN: &str = "vcl 4.1;\nsub a { call b }\n";

#[test]
fn files_are_laid_out_in_place() {
    let folder = folder("in-place");
    for (name, text) in [("tidy.vcl", TIDY), ("untidy.vcl", UNTIDY), ("broken.vcl", BROKEN)] {
        std::fs::write(folder.join(name), text).expect("a file can be written");
    }
    std::os::unix::fs::symlink("untidy.vcl", folder.join("link.vcl")).expect("a link can be made");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the file is there");

    check(&folder, "vcl fmt --check tidy.vcl untidy.vcl", "", (1, "untidy.vcl\n", ""));
    check(&folder, "vcl fmt --check tidy.vcl", "", (0, "", ""));
    check(&folder, "vcl fmt --stdout untidy.vcl", "", (0, TIDY, ""));
    assert_eq!(read("untidy.vcl"), UNTIDY);
    check(&folder, "vcl fmt link.vcl tidy.vcl", "", (0, "", ""));
    assert_eq!((read("untidy.vcl").as_str(), read("tidy.vcl").as_str()), (TIDY, TIDY));
    assert!(folder.join("link.vcl").is_symlink());
    check(&folder, "vcl fmt broken.vcl", "", (1, "", "broken.vcl:2:15: error[missing-semicolon]"));
    assert_eq!(read("broken.vcl"), BROKEN);
    check(&folder, "vcl fmt none.vcl", "", (1, "", "none.vcl: error: No such file"));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder is there").count(), 4, "nothing is left beside");
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = folder("input");
    check(&folder, "vcl fmt -", UNTIDY, (0, TIDY, ""));
    check(&folder, "vcl fmt --check -", UNTIDY, (1, "-\n", ""));
    check(&folder, "vcl fmt --indent tab -", UNTIDY, (0, &TIDY.replace("    ", "\t"), ""));
    check(&folder, "vcl fmt -", BROKEN, (1, "", "<stdin>:2:15: error[missing-semicolon]"));
    let json = "{\"files\":[{\"changed\":true,\"errors\":[],\"file\":\"-\",\"ok\":true}]}\n";
    check(&folder, "vcl fmt --json -", UNTIDY, (0, json, ""));
}

#[test]
fn old_files_become_new_ones() {
    let folder = folder("import");
    let backend = "backend a { .host = \"10.0.0.1\"; }\n";
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file can be written");
    write("good.vcl", &format!("{backend}sub vcl_fetch {{ esi; }}\n"));
    write("left.vcl", &format!("{backend}sub vcl_recv {{ C{{ }}C }}\n"));
    write("bad.vcl", &format!("{backend}sub vcl_recv {{ call nobody; }}\n"));
    write("whole.vcl", &format!("include \"part.vcl\";\n{backend}"));
    write("part.vcl", "sub vcl_recv { set req.backend = a; }\n");
    write("other.vcl", "worker_processes 4;\n");

    let expect = format!("vcl 4.1;\n\n{backend}sub vcl_backend_response {{ set beresp.do_esi = true; }}\n");
    check(&folder, "import good.vcl", "", (0, &expect, "carried over, with 0 notes; the new file is good"));
    check(&folder, "import good.vcl -o new.vcl", "", (0, "", "the new file is good"));
    assert_eq!(std::fs::read_to_string(folder.join("new.vcl")).expect("it is there"), expect);
    check(&folder, "check new.vcl", "", (0, "new.vcl: ok: 1 subroutine, 1 backend, 0 ACLs, 0 warnings\n", ""));
    check(&folder, "import new.vcl", "", (0, &expect, "the new file is good"));
    check(&folder, "import good.vcl -o good.vcl", "", (1, "", "would replace the file itself"));
    check(&folder, "import left.vcl -o x.vcl", "", (1, "", "left.vcl:2:16: error[not-carried-over]"));
    check(&folder, "import bad.vcl -o x.vcl", "", (1, "", "the new file has 1 mistake"));
    check(&folder, "import whole.vcl -o x.vcl", "", (0, "", "the new file is good"));
    check(&folder, "import part.vcl -o x.vcl", "", (0, "", "as a part of a program"));
    check(&folder, "import other.vcl", "", (1, "", "other.vcl:1:1: error[syntax]: expected a definition"));
}

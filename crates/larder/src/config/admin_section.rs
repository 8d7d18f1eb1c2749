//! `[admin]`: where metrics, status and commands are, and who may change anything.

use std::sync::Arc;

use http::HeaderName;
use message::FieldName;
use proxy::settings::ExplainField;

use super::complaint::Complaint;
use super::section::{Section, network, parsed, path, switch};
use super::sections::address_text;
use crate::addresses::parse_admin;
use crate::bounded_file;
use crate::limits::TOKEN_FILE_BYTES_MAX;
use crate::plan::{AdminPlan, HistoryPlace, Plan};

const HEADER_FORM: &str = "the name of a header that nothing else means, such as X-Larder-Explain";
const TOKEN_FORM: &str = "at least 16 printable characters without spaces";

pub fn read(mut section: Section<'_>, plan: &mut Plan) {
    read_way_in(&mut section, &mut plan.admin);
    plan.settings.debug = section.read("debug", switch).unwrap_or(false);
    if let Some(networks) = section.read_list("details_to", network) {
        plan.settings.details_to = networks;
    }
    plan.admin.explain_header = section.read("explain_header", |node| parsed(node, "header", HEADER_FORM, header));
    let history = section.read("history", |node| parsed(node, "history", "a path, or \"off\"", path));
    if let Some(file) = history {
        plan.admin.history = if file.as_os_str() == "off" { HistoryPlace::Off } else { HistoryPlace::At(file) };
    }
    if plan.admin.token.is_some() && plan.admin.token_file.is_some() {
        let complaint = Complaint::new(section.span(), "there is a token and a file with one", "which of them counts?");
        section.complaints().add(complaint.suggest("leave token out: whoever reads this file reads it"));
    }
    section.end();
}

/// Where it is and what it takes to be let in: all that a command wants to know, whatever else is in the section. A key that somebody has
/// appended to the file stands in its last one.
pub fn read_way_in(section: &mut Section<'_>, admin: &mut AdminPlan) {
    let address = section.read("address", |node| {
        let written = address_text(node)?;
        parse_admin(written)
            .map_err(|why| Complaint::new(node.span(), format!("`{written}` is no address for [admin]"), why))
    });
    if let Some(address) = address {
        admin.address = address;
        admin.asked_for = true;
    }
    admin.token = section.read("token", |node| parsed(node, "token", TOKEN_FORM, token));
    admin.token_file = section.read("token_file", |node| parsed(node, "file", "a path", path));
}

/// The token that lies in a file of its own. It is on one line, and may have a line end behind it.
pub fn read_token_file(admin: &mut AdminPlan) -> Result<(), String> {
    let Some(file) = &admin.token_file else { return Ok(()) };
    let why = |why: String| format!("token_file of [admin]: {}: {why}", file.display());
    let text = bounded_file::read_text(file, TOKEN_FILE_BYTES_MAX).map_err(|error| why(error.to_string()))?;
    let found = token(text.trim_end()).ok_or_else(|| why(format!("a token is {TOKEN_FORM}")))?;
    admin.token = Some(found);
    Ok(())
}

/// What asks why an answer is as it is holds the token, which may lie in a file.
pub fn set_explain_field(plan: &mut Plan) -> Result<(), String> {
    let Some(name) = &plan.admin.explain_header else { return Ok(()) };
    let Some(token) = &plan.admin.token else {
        return Err(
            "explain_header of [admin] needs a token, or a token_file: who brings it is told what is stored".to_owned()
        );
    };
    let field = ExplainField { name: name.as_str().into(), token: token.as_str().into() };
    plan.settings.explain_field = Some(Arc::new(field));
    Ok(())
}

/// One that the proxy itself reads is none.
fn header(written: &str) -> Option<String> {
    let name = written.parse::<HeaderName>().ok()?;
    (FieldName::classify(name.as_str().as_bytes()) == FieldName::Other).then(|| written.to_owned())
}

fn token(written: &str) -> Option<String> {
    (written.len() >= 16 && written.bytes().all(|b| b.is_ascii_graphic())).then(|| written.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proxy::settings::ListenAddress;

    use crate::addresses::AdminAddress;
    use crate::config::{ConfigError, load, load_admin, read};

    fn loaded(folder: &Path, token: &str) -> Result<Option<String>, String> {
        std::fs::write(folder.join("larder.toml"), "[admin]\ntoken_file = \"admin.token\"\n").unwrap();
        std::fs::write(folder.join("admin.token"), token).unwrap();
        let plan = load(&folder.join("larder.toml")).map_err(|error: ConfigError| error.show(false))?;
        Ok(plan.admin.token)
    }

    #[test]
    fn a_command_reads_admin_alone() {
        let folder = std::env::temp_dir().join(format!("larder-admin-alone-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("larder.toml");
        let admin = "[admin]\naddress = \"unix:a.sock\"\ntoken = \"0123456789abcdef\"\n";
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            load_admin(&file).map_err(|error| error.show(false))
        };
        for broken in ["colour = 1\n", "[[route]]\npath = 5\n", "[listen]\n", "[origin.a]\nurls = \"x y\"\n"] {
            let found = read(&[broken, admin].concat()).unwrap_or_else(|why| panic!("{broken}: {why}"));
            assert_eq!(found.token.as_deref(), Some("0123456789abcdef"), "{broken}");
            let socket = ListenAddress::Unix(folder.join("a.sock"));
            assert_eq!(found.address, AdminAddress::At(socket), "beside the file");
            assert!(load(&file).is_err(), "{broken}");
        }
        for broken in ["[[route]\npath = \"/\"\n", "[origin.my app]\nurls = \"http://a\"\n", "ttl = 1h\n", "a = [1,\n"]
        {
            let found = read(&[admin, "[policy]\n", broken].concat()).unwrap_or_else(|why| panic!("{broken}: {why}"));
            assert_eq!(found.token.as_deref(), Some("0123456789abcdef"), "{broken}");
        }
        for broken in ["[admin]\ntoken = 0123456789abcdef\n", "x = \"\"\"\n[admin]\ntoken = \"0123456789abcdef\"\n"] {
            assert!(read(broken).is_err(), "a mistake that is part of it: {broken}");
        }
        for (wrong, said) in [("[admin]\ntoken = \"short\"\n", "at least 16"), ("[admin\n", "error")] {
            let why = read(wrong).map(|_| ()).unwrap_err();
            assert!(why.contains(said), "{wrong}: {why}");
        }
        assert_eq!(read("").unwrap().token, None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_token_may_lie_in_a_file_beside_the_config() {
        let folder = std::env::temp_dir().join(format!("larder-token-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(loaded(&folder, "0123456789abcdef\n"), Ok(Some("0123456789abcdef".to_owned())));
        for wrong in ["short\n", "", "0123456789abcdef 0123456789abcdef"] {
            let said = loaded(&folder, wrong).unwrap_err();
            assert!(said.contains("token_file of [admin]") && said.contains("at least 16"), "{said}");
            assert!(!said.contains("0123"), "{said}");
        }
        std::fs::remove_file(folder.join("admin.token")).unwrap();
        let said = load(&folder.join("larder.toml")).unwrap_err().show(false);
        assert!(said.contains("admin.token: No such file"), "{said}");
        std::fs::remove_dir_all(&folder).unwrap();
        let both = read("[admin]\ntoken = \"0123456789abcdef\"\ntoken_file = \"a\"\n").unwrap_err();
        assert_eq!(both[0].what, "there is a token and a file with one");
    }

    #[test]
    fn a_header_that_asks_why_needs_a_token_and_a_name_of_its_own() {
        let folder = std::env::temp_dir().join(format!("larder-asks-why-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("larder.toml");
        let loaded = |text: &str| {
            std::fs::write(&file, format!("[admin]\n{text}\n")).unwrap();
            load(&file).map(|plan| plan.settings.explain_field).map_err(|error: ConfigError| error.show(false))
        };
        let token = "token = \"0123456789abcdef\"";
        let field = loaded(&format!("{token}\nexplain_header = \"X-Why\"")).unwrap().unwrap();
        assert_eq!((&*field.name, &*field.token), ("X-Why", "0123456789abcdef"));
        assert_eq!(loaded(token), Ok(None));
        assert!(loaded("explain_header = \"X-Why\"").unwrap_err().contains("needs a token"));
        for wrong in ["Cookie", "authorization", "a b", ""] {
            let said = loaded(&format!("{token}\nexplain_header = \"{wrong}\"")).unwrap_err();
            assert!(said.contains("X-Larder-Explain"), "{said}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

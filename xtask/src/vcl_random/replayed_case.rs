//! A program and the requests that it is asked, as a file that somebody can read, change and play again.
//!
//! `{port}` in the program stands for the port of the origin.

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub vcl: String,
    #[serde(rename = "request")]
    pub requests: Vec<Request>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `GET /a?words`; the words are what the origin is asked for, by `origin_words.rs`.
    pub line: String,
    #[serde(default)]
    pub fields: Vec<String>,
    pub body: Option<String>,
    /// Milliseconds before it is sent.
    #[serde(default)]
    pub wait_ms: u64,
    /// The client's address, which the PROXY protocol tells. Each has a connection, which is kept.
    #[serde(default = "usual_client")]
    pub client: String,
    /// How the origin is from now on: `well`, `failing` (503) or `gone` (it closes).
    #[serde(default = "well")]
    pub origin: String,
}

pub const USUAL_CLIENT: &str = "127.0.0.1";
pub const WELL: &str = "well";

fn usual_client() -> String {
    USUAL_CLIENT.to_string()
}

fn well() -> String {
    WELL.to_string()
}

impl Request {
    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// `GET /a, X-A: 1, the origin is gone`: without what each request has anyhow.
    pub fn short(&self) -> String {
        let origin = (self.origin != WELL).then(|| format!("the origin is {}", self.origin));
        let words = [self.line.clone()].into_iter().chain(self.fields.iter().cloned()).chain(origin);
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Case {
    pub fn read(text: &str) -> Result<Case, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    pub fn written(&self) -> String {
        let mut text = format!("vcl = '''\n{}'''\n", self.vcl);
        for request in &self.requests {
            text.push_str(&format!("\n[[request]]\nline = {:?}\n", request.line));
            let mut line = |name: &str, value: String| text.push_str(&format!("{name} = {value}\n"));
            if !request.fields.is_empty() {
                line("fields", format!("{:?}", request.fields));
            }
            if let Some(body) = &request.body {
                line("body", format!("{body:?}"));
            }
            if request.wait_ms > 0 {
                line("wait_ms", request.wait_ms.to_string());
            }
            if request.client != USUAL_CLIENT {
                line("client", format!("{:?}", request.client));
            }
            if request.origin != WELL {
                line("origin", format!("{:?}", request.origin));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let plain = Request {
            line: "GET /a".to_string(),
            fields: Vec::new(),
            body: None,
            wait_ms: 0,
            client: usual_client(),
            origin: well(),
        };
        let rich = Request {
            line: "POST /\"b\"".to_string(),
            fields: vec!["X-A: \"1\\\"".to_string()],
            body: Some("x\ny".to_string()),
            wait_ms: 700,
            client: "10.0.0.1".to_string(),
            origin: "gone".to_string(),
        };
        let case = Case { vcl: "vcl 4.1;\n# \"\\n\"\n".to_string(), requests: vec![plain, rich] };
        assert_eq!(Case::read(&case.written()), Ok(case));
    }
}

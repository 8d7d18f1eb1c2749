//! The head of an encoding: that of the response that it is made of, with what its coding makes different.

use message::ResponseHead;
use rules::Facts;

use crate::encoding_name::EncodingName;
use crate::kept_head::KeptHead;
use crate::object::{EncodingsFrom, Object, ObjectParts};

/// What an encoding is made of, but for its body.
pub(crate) fn encoding_parts(head: KeptHead, primary: &Object) -> ObjectParts {
    let facts = primary.facts();
    ObjectParts {
        out_of_line: None,
        // Made anew it may be other bytes under the same date: that is no strong validator of a part (RFC 9110 §8.8.2.2).
        facts: Facts { date: facts.last_modified.unwrap_or(facts.date), ..facts },
        tags: None,
        esi: None,
        on_disk: 0,
        encodings: EncodingsFrom::Nobody,
        ..ObjectParts::under(head, primary)
    }
}

/// The head of a stored response in another coding, and as it is rendered: the lines of ours stay what they are.
pub(crate) fn recoded(primary: &Object, name: EncodingName) -> (ResponseHead, Vec<u8>) {
    let mut head = primary.response().to_head();
    let lines_of = |head: &ResponseHead| -> Vec<Vec<u8>> {
        let line = |name: &[u8], value: &[u8]| [name, b": ", value, b"\r\n"].concat();
        head.fields.view().iter().map(|field| line(field.name_text, field.value)).collect()
    };
    let before = lines_of(&head);
    name.recode(&mut head.fields);
    let mut rendered = primary.rendered().split_inclusive(|&b| b == b'\n');
    let mut out = rendered.next().unwrap_or_default().to_vec();
    let rendered: Vec<&[u8]> = rendered.collect();
    for line in lines_of(&head) {
        // What was kept beside the rendered lines stays beside them.
        if !before.contains(&line) || rendered.contains(&&line[..]) {
            out.extend_from_slice(&line);
        }
    }
    for line in rendered.iter().filter(|line| !before.iter().any(|known| known == *line)) {
        out.extend_from_slice(line);
    }
    (head, out)
}

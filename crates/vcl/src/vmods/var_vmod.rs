//! vmod var: values under names, for one transaction or for all. A read of what is not there, or is of another type,
//! gives nothing: an absent text, zero, no backend.

use super::kept_values::GLOBAL_VARIABLES;
use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::host::Host;
use crate::plain_values::{Fault, Plain};
use crate::types::Type;

functions! {
    VarFunction {
        Set "set",
        Get "get",
        GlobalSet "global_set",
        GlobalGet "global_get",
        SetInt "set_int",
        GetInt "get_int",
        SetString "set_string",
        GetString "get_string",
        SetReal "set_real",
        GetReal "get_real",
        SetDuration "set_duration",
        GetDuration "get_duration",
        SetIp "set_ip",
        GetIp "get_ip",
        SetBackend "set_backend",
        GetBackend "get_backend",
        Clear "clear",
    }
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: VarFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use VarFunction as F;
    // Nothing is kept under an absent name, so nothing is found there.
    let name = given.text(0);
    let set_other = || match (name, given.plain(1)) {
        (Some(name), Some(value)) => run.host.task().with_variables(|variables| variables.set(name, value)),
        _ => Ok(()),
    };
    let get_other = |of: Type| {
        let value = name.and_then(|name| run.host.task().with_variables(|variables| variables.other(name)));
        Ok(value.filter(|value| value.is_of(of)).unwrap_or(Plain::nothing(of)))
    };
    match function {
        F::Clear => run.host.task().with_variables(|variables| variables.clear()),
        F::Set | F::SetString => {
            if let Some(name) = name {
                run.host.task().with_variables(|variables| variables.set_text(name, given.bytes(1)))?;
            }
        }
        F::Get | F::GetString => {
            let Some(name) = name else { return Ok(Plain::Text(None)) };
            let copy = |text: &[u8]| run.arena.copy(text);
            let text = run.host.task().with_variables(|variables| variables.text(name).map(copy).transpose())?;
            return Ok(Plain::Text(text));
        }
        F::SetInt | F::SetReal | F::SetDuration | F::SetIp | F::SetBackend => set_other()?,
        F::GetInt => return get_other(Type::Int),
        F::GetReal => return get_other(Type::Real),
        F::GetDuration => return get_other(Type::Duration),
        F::GetIp => return get_other(Type::Ip),
        F::GetBackend => return get_other(Type::Backend),
        F::GlobalSet => {
            if let Some(name) = name.filter(|_| !run.host.is_dry_run()) {
                GLOBAL_VARIABLES.set(name, given.text(1))?;
            }
        }
        F::GlobalGet => {
            let text = name.and_then(|name| GLOBAL_VARIABLES.look(name, |text| run.arena.copy(text)));
            return text.transpose().map(Plain::Text);
        }
    }
    Ok(NOTHING)
}

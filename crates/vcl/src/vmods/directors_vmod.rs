//! The functions of vmod directors.

use super::directors::{Director, How};
use super::shard_director::Shard;
use super::shard_parameters::{self, ShardArguments, ShardParameters};
use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::host::{Host, LogKind};
use crate::objects::Object;
use crate::plain_values::{BackendRef, Fault, Plain};
use crate::typed_program::{BackendId, ObjectId};

functions! {
    DirectorsFunction {
        NewRoundRobin "round_robin",
        RoundRobinAdd "round_robin.add_backend",
        RoundRobinRemove "round_robin.remove_backend",
        RoundRobinBackend "round_robin.backend",
        NewFallback "fallback",
        FallbackAdd "fallback.add_backend",
        FallbackRemove "fallback.remove_backend",
        FallbackBackend "fallback.backend",
        NewRandom "random",
        RandomAdd "random.add_backend",
        RandomRemove "random.remove_backend",
        RandomBackend "random.backend",
        NewHash "hash",
        HashAdd "hash.add_backend",
        HashRemove "hash.remove_backend",
        HashBackend "hash.backend",
        NewShard "shard",
        ShardWarmup "shard.set_warmup",
        ShardRampup "shard.set_rampup",
        ShardAssociate "shard.associate",
        ShardAdd "shard.add_backend",
        ShardRemove "shard.remove_backend",
        ShardClear "shard.clear",
        ShardReconfigure "shard.reconfigure",
        ShardKey "shard.key",
        ShardBackend "shard.backend",
        ShardDebug "shard.debug",
        NewShardParam "shard_param",
        ParamClear "shard_param.clear",
        ParamSet "shard_param.set",
        ParamBy "shard_param.get_by",
        ParamKey "shard_param.get_key",
        ParamAlt "shard_param.get_alt",
        ParamWarmup "shard_param.get_warmup",
        ParamRampup "shard_param.get_rampup",
        ParamHealthy "shard_param.get_healthy",
        ParamUse "shard_param.use",
        Lookup "lookup",
    }
}

/// What `new` makes.
pub fn make(function: DirectorsFunction, given: &Arguments<'_, '_>) -> Result<Object, Fault> {
    use DirectorsFunction as F;
    Ok(match function {
        F::NewRoundRobin => Object::Director(Director::new(How::RoundRobin(Default::default()))),
        F::NewFallback => {
            Object::Director(Director::new(How::Fallback { sticky: given.truth(0), last: Default::default() }))
        }
        F::NewRandom => Object::Director(Director::new(How::Random)),
        F::NewHash => Object::Director(Director::new(How::Hash)),
        F::NewShard => Object::Shard(Shard::default()),
        F::NewShardParam => Object::ShardParameters(ShardParameters::default()),
        other => return Err(Fault::new(format!("{other:?} makes no object"))),
    })
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DirectorsFunction,
    object: Option<ObjectId>,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    if function == DirectorsFunction::Lookup {
        return Ok(Plain::Backend(lookup(run, given.bytes(0))));
    }
    let id = object.ok_or_else(|| Fault::new("a method is called without its object"))?;
    match run.loaded.objects().get(id) {
        Some(Object::Director(director)) => of_director(run, function, id, director, given),
        Some(Object::Shard(shard)) => of_shard(run, function, id, shard, given),
        Some(Object::ShardParameters(parameters)) => shard_parameters::call(run, function, id, parameters, given),
        _ => Err(Fault::new(format!(
            "{} is used before `new` has made it in vcl_init",
            run.loaded.backend_name(BackendRef::Director(id))
        ))),
    }
}

fn of_director<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DirectorsFunction,
    id: ObjectId,
    director: &Director,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use DirectorsFunction as F;
    match function {
        F::RoundRobinAdd | F::FallbackAdd => director.add(member(run, given)?, 1.0)?,
        F::RandomAdd | F::HashAdd => director.add(member(run, given)?, given.real(1))?,
        F::RoundRobinRemove | F::FallbackRemove | F::RandomRemove | F::HashRemove => director.remove(given.backend(0)),
        F::HashBackend => {
            return Ok(Plain::Backend(director.by_key(run.loaded, run.host, given.bytes(0))));
        }
        _ => return Ok(Plain::Backend(BackendRef::Director(id))),
    }
    Ok(NOTHING)
}

/// What is added to a director. As in Varnish, what is called `none` is no member.
fn member<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Result<BackendRef, Fault> {
    let backend = given.backend(0);
    match run.loaded.is_none(backend) {
        true => Err(Fault::new("None backend cannot be added")),
        false => Ok(backend),
    }
}

/// As in Varnish, a shard director passes over a number that is none for it, and says so in the log.
fn ignored<'a, H: Host<'a>>(run: &Run<'a, '_, H>, id: ObjectId, call: std::fmt::Arguments<'_>) {
    let name = run.loaded.backend_name(BackendRef::Director(id));
    run.host.log(LogKind::Program, format!("shard {name}: .{call} ignored").as_bytes());
}

fn of_shard<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DirectorsFunction,
    id: ObjectId,
    shard: &Shard,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use DirectorsFunction as F;
    let plain_real = |index: usize| given.plain(index).map(Plain::real);
    match function {
        F::ShardWarmup => {
            let probability = given.real(0);
            if !shard.set_warmup(probability) {
                ignored(run, id, format_args!("set_warmup({probability:.6})"));
            }
        }
        F::ShardRampup => shard.set_rampup(given.real(0))?,
        F::ShardAssociate => shard.associate(given.text(0).map(shard_parameters::object_of).transpose()?),
        F::ShardAdd => {
            let name = match given.text(1) {
                Some(ident) => ident.to_vec(),
                None => run.loaded.backend_name(given.backend(0)).as_bytes().to_vec(),
            };
            let weight = plain_real(3).unwrap_or(1.0);
            let member = member(run, given)?;
            if weight < 1.0 {
                ignored(run, id, format_args!("add_backend(weight={weight:.6})"));
            }
            shard.add(member, name, plain_real(2), weight.max(1.0))?;
            return Ok(Plain::Bool(true));
        }
        F::ShardRemove => {
            let backend = given.is_given(0).then(|| given.backend(0));
            return Ok(Plain::Bool(shard.remove(backend, given.text(1))));
        }
        F::ShardClear => {
            shard.clear();
            return Ok(Plain::Bool(true));
        }
        F::ShardReconfigure => {
            return shard.reconfigure(given.int(0)).map(Plain::Bool);
        }
        F::ShardKey => return Ok(Plain::Int(i64::from(super::shard_director::hash(&[given.bytes(0)])))),
        F::ShardBackend => {
            return shard_backend(run, id, shard, given).map(Plain::Backend);
        }
        // ShardDebug: what it would log is Varnish's own affair.
        _ => {}
    }
    Ok(NOTHING)
}

/// `shard.backend`: who answers, or the director itself, which chooses when the fetch begins, by what was said last.
fn shard_backend<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    id: ObjectId,
    shard: &Shard,
    given: &Arguments<'_, 'a>,
) -> Result<BackendRef, Fault> {
    let param = given.text(7).map(shard_parameters::object_of).transpose()?;
    let said = ShardArguments { param, ..ShardArguments::of_call(given)? };
    let is_late = given.word(8).map_or(run.is_housekeeping(), |word| word == "LAZY");
    if !is_late {
        return match run.is_housekeeping() {
            true => Err(Fault::new("shard.backend() cannot choose in vcl_init and vcl_fini: use resolve=LAZY")),
            false => shard.choose_now(run, id, &said),
        };
    }
    if said != ShardArguments::default() {
        if !run.is_backend_side() {
            let what = "shard.backend(): resolve=LAZY takes other arguments in vcl_pipe and on the backend's side only";
            return Err(Fault::new(what));
        }
        run.host.task().set_shard_arguments(id, said);
    }
    Ok(BackendRef::Director(id))
}

/// A backend or director by its name.
fn lookup<'a, H: Host<'a>>(run: &Run<'a, '_, H>, name: &[u8]) -> BackendRef {
    let program = run.loaded.program();
    let backend = program.backends.iter().position(|backend| backend.name.as_bytes() == name);
    if let Some(index) = backend {
        return BackendRef::Named(BackendId(index as u32));
    }
    let object = program.objects.iter().position(|object| object.name.as_bytes() == name);
    let id = object.map(|index| ObjectId(index as u32));
    match id.and_then(|id| Some((id, run.loaded.objects().get(id)?))) {
        Some((id, Object::Director(_) | Object::Shard(_))) => BackendRef::Director(id),
        _ => BackendRef::None,
    }
}

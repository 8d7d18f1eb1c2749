//! The objects that a program makes in vcl_init: directors, blobs and their like. They live as long as the program and
//! are shared by all transactions.

use std::sync::OnceLock;

use crate::plain_values::Fault;
use crate::typed_program::ObjectId;
use crate::vmods::directors::Director;
use crate::vmods::dynamic_vmod::DynamicDirector;
use crate::vmods::saintmode_vmod::Saintmode;
use crate::vmods::shard_director::Shard;
use crate::vmods::shard_parameters::ShardParameters;

/// What one object is.
#[derive(Debug)]
pub enum Object {
    Director(Director),
    Shard(Shard),
    ShardParameters(ShardParameters),
    Saintmode(Saintmode),
    Dynamic(DynamicDirector),
    /// Of vmod dynamic: larder's own is asked whatever it says.
    Resolver,
    Blob(Box<[u8]>),
}

/// All of a program, by number; each is there from its `new` on.
#[derive(Debug)]
pub struct Objects {
    slots: Box<[OnceLock<Object>]>,
}

impl Objects {
    pub fn new(count: usize) -> Objects {
        Objects { slots: (0..count).map(|_| OnceLock::new()).collect() }
    }

    pub fn put(&self, id: ObjectId, object: Object) -> Result<(), Fault> {
        let slot = self.slots.get(id.index()).ok_or_else(|| Fault::new("there is no such object"))?;
        slot.set(object).map_err(|_| Fault::new("the object exists already"))
    }

    /// Those that are there, in the order of the text.
    pub fn all(&self) -> impl Iterator<Item = &Object> {
        self.slots.iter().filter_map(OnceLock::get)
    }

    pub fn get(&self, id: ObjectId) -> Option<&Object> {
        self.slots.get(id.index()).and_then(OnceLock::get)
    }
}

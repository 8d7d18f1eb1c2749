//! What operators change about the addresses of an origin while everything runs.

use std::sync::Arc;

use super::address::Address;
use super::address_order::AddressOrder;
use super::{Origin, Origins};

/// `None`: as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressChange {
    pub order: Option<AddressOrder>,
    pub weight: Option<WeightOrder>,
}

/// What an address weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightOrder {
    /// As the configuration says.
    Auto,
    Set(u32),
}

/// There is no such origin, or no such address of it: the sentence says which ones there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOrigin(pub String);

impl Origins {
    /// Changes an address of the origin of this name, or all of them.
    pub fn order(
        &self,
        origin: &str,
        address: Option<&str>,
        change: AddressChange,
        now_ms: u64,
    ) -> Result<(), UnknownOrigin> {
        let Some(found) = self.all().iter().find(|known| *known.name == *origin) else {
            let names = listed(self.all().iter().map(|known| &*known.name));
            return Err(UnknownOrigin(format!("no origin is called `{origin}`: {names}")));
        };
        found.order(address, change, now_ms)
    }
}

impl Origin {
    fn order(&self, address: Option<&str>, change: AddressChange, now_ms: u64) -> Result<(), UnknownOrigin> {
        let all = self.servers.book().addresses.clone();
        let is_meant = |known: &&Arc<Address>| address.is_none_or(|label| *known.label == *label);
        let meant: Vec<&Arc<Address>> = all.iter().filter(is_meant).collect();
        if meant.is_empty() {
            let labels = listed(all.iter().map(|known| &*known.label));
            let asked = address.unwrap_or("any");
            return Err(UnknownOrigin(format!("the origin `{}` has no address `{asked}`: {labels}", self.name)));
        }
        for address in meant {
            if let Some(order) = change.order {
                address.order(order, now_ms);
            }
            match change.weight {
                Some(WeightOrder::Auto) => address.order_weight(None),
                Some(WeightOrder::Set(weight)) => address.order_weight(Some(weight)),
                None => {}
            }
            self.servers.ordered(address, now_ms);
        }
        Ok(())
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none is known".to_owned() } else { format!("there are {}", names.join(", ")) }
}

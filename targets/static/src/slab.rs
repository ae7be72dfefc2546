//! Connections by token. A token names one connection for ever: the place of a closed one is used
//! again under another generation, so an event or a timer that comes late finds nothing.

/// A growing list of places.
#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    held: Option<T>,
}

fn parts(token: u64) -> (usize, u32) {
    // Low half: place; high half: generation.
    ((token & 0xffff_ffff) as usize, (token >> 32) as u32)
}

impl<T> Slab<T> {
    pub fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts a value in and gives its token; `make` is told the token.
    pub fn insert(&mut self, make: impl FnOnce(u64) -> T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                held: None,
            });
            // Descriptors are far fewer than 2^32.
            (self.places.len() - 1) as u32
        });
        let at = &mut self.places[place as usize];
        let token = u64::from(at.generation) << 32 | u64::from(place);
        at.held = Some(make(token));
        token
    }

    pub fn get_mut(&mut self, token: u64) -> Option<&mut T> {
        let (place, generation) = parts(token);
        let at = self.places.get_mut(place)?;
        at.held.as_mut().filter(|_| at.generation == generation)
    }

    /// Takes a value out; its token is dead from now on.
    pub fn remove(&mut self, token: u64) -> Option<T> {
        let (place, generation) = parts(token);
        let at = self.places.get_mut(place)?;
        if at.generation != generation {
            return None;
        }
        let held = at.held.take()?;
        at.generation = at.generation.wrapping_add(1);
        self.free.push(place as u32);
        Some(held)
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// Tokens of the values that satisfy `want`.
    pub fn tokens_where<'a>(
        &'a self,
        want: impl Fn(&T) -> bool + 'a,
    ) -> impl Iterator<Item = u64> + 'a {
        self.places.iter().enumerate().filter_map(move |(i, p)| {
            let token = u64::from(p.generation) << 32 | i as u64;
            p.held.as_ref().filter(|held| want(held)).map(|_| token)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_token_finds_nothing() {
        let mut slab = Slab::new();
        let a = slab.insert(|_| 'a');
        let b = slab.insert(|_| 'b');
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!(slab.remove(a), None);
        let c = slab.insert(|token| {
            assert_ne!(token, a, "the same place has another token");
            'c'
        });
        assert_eq!(c & 0xffff_ffff, a & 0xffff_ffff, "the place is used again");
        assert_eq!(slab.get_mut(a), None);
        assert_eq!(slab.get_mut(c), Some(&mut 'c'));
        assert_eq!(slab.tokens_where(|v| *v == 'b').collect::<Vec<_>>(), [b]);
        slab.remove(b);
        assert!(!slab.is_empty());
        slab.remove(c);
        assert!(slab.is_empty());
    }
}

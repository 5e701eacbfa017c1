//! Circles in a graph: its strongly connected components of more than one node, by Tarjan's algorithm.

/// Each circle's nodes, sorted; the biggest circle first.
pub fn circles(followers: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let unseen = vec![None; followers.len()];
    let mut search =
        Search { followers, entered: unseen.clone(), lowest: vec![0; unseen.len()], ..Search::default() };
    for node in 0..followers.len() {
        if search.entered[node].is_none() {
            search.enter(node);
        }
    }
    search.circles.sort_by_key(|circle| (usize::MAX - circle.len(), circle[0]));
    search.circles
}

#[derive(Default)]
struct Search<'a> {
    followers: &'a [Vec<usize>],
    /// When each node was entered.
    entered: Vec<Option<usize>>,
    /// The earliest entered node that each leads back to.
    lowest: Vec<usize>,
    /// The nodes whose circle is not complete.
    open: Vec<usize>,
    time: usize,
    circles: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn enter(&mut self, node: usize) {
        let entered = self.time;
        self.time += 1;
        self.entered[node] = Some(entered);
        self.lowest[node] = entered;
        self.open.push(node);
        for &next in &self.followers[node] {
            match self.entered[next] {
                None => {
                    self.enter(next);
                    self.lowest[node] = self.lowest[node].min(self.lowest[next]);
                }
                Some(time) if self.open.contains(&next) => self.lowest[node] = self.lowest[node].min(time),
                Some(_) => {}
            }
        }
        if self.lowest[node] == entered {
            let start = self.open.iter().position(|open| *open == node).unwrap_or(0);
            let mut circle = self.open.split_off(start);
            if circle.len() > 1 {
                circle.sort_unstable();
                self.circles.push(circle);
            }
        }
    }
}

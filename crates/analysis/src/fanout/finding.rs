//! Facts about an aggregate over a join, and the sentence for it.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// A joined table can have several rows for one that is aggregated.
    Multiplied,
    /// Keys prove that each row is counted once.
    NotMultiplied,
    #[default]
    Undetermined,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The table whose rows are meant, as `FROM` calls it.
    pub table: Option<String>,
    pub verdict: Verdict,
    /// What `FROM` joins that may have several rows for one.
    pub by: Vec<String>,
    /// The condition of the join is more than equal columns, so no key limits the matching rows.
    pub is_unread: bool,
    /// A statement that counts joined rows and rows of the table: their ratio is the factor.
    pub probe: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub aggregate: String,
    /// It adds equal values once, even if they are from several rows.
    pub distinct: bool,
    pub effect: Effect,
}

impl Finding {
    /// Returns whether the statement itself is a reason for a warning: not where only keys are unknown.
    pub fn is_reported(&self) -> bool {
        match self.effect.verdict {
            Verdict::Multiplied => true,
            Verdict::Undetermined => self.effect.is_unread && self.effect.table.is_some(),
            Verdict::NotMultiplied => false,
        }
    }

    pub fn sentence(&self) -> String {
        let Self { aggregate, distinct, effect } = self;
        let table = effect.table.as_deref().unwrap_or_default();
        let by = effect.by.join(", ");
        match effect.verdict {
            Verdict::Multiplied if *distinct => format!(
                "{aggregate} counts equal values of different rows of {table} once, and {by} repeats these rows; aggregate before the join"
            ),
            Verdict::Multiplied => format!(
                "{aggregate} counts a row of {table} once per matching row of {by}; aggregate before the join, or count distinct keys"
            ),
            Verdict::Undetermined | Verdict::NotMultiplied => format!(
                "{aggregate} may count a row of {table} more than once: it is not known how many rows of {by} match; aggregate before the join"
            ),
        }
    }
}

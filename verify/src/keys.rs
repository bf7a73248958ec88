//! The keys of a policy's text, each value in one form, whether or not this build knows the key.

use serde::{Deserialize, Serialize};
use std::fmt::Write;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key, its value as TOML on one line, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    /// As `halo.coalesce`.
    pub(crate) key: String,
    /// As `true`.
    pub(crate) value: String,
    /// From 1, where it stands in a file.
    #[serde(skip)]
    pub(crate) line: Option<usize>,
}

/// The keys of `text`, in its order, with `sets` over what stands in it; none where it is not TOML.
pub(crate) fn read(text: &str, sets: &[(String, String)]) -> Vec<Key> {
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let mut found: Vec<(usize, Key)> = Vec::new();
    for (section, content) in table.get_ref().iter() {
        let section = section.get_ref();
        let Some(keys) = content.get_ref().as_table() else {
            found.push(key(text, content.span().start, section.to_string(), content));
            continue;
        };
        for (name, value) in keys.iter() {
            found.push(key(text, name.span().start, format!("{section}.{}", name.get_ref()), value));
        }
    }
    found.sort_by_key(|(start, _)| *start);
    let mut keys: Vec<Key> = found.into_iter().map(|(_, key)| key).collect();
    for (name, value) in sets {
        let value = DeValue::parse(value).map_or_else(|_| format!("{value:?}"), |v| written(v.get_ref()));
        if let Some(key) = keys.iter_mut().find(|key| key.key == *name) {
            *key = Key { value, line: None, ..key.clone() };
        }
    }
    keys
}

fn key(text: &str, start: usize, key: String, value: &Spanned<DeValue<'_>>) -> (usize, Key) {
    let line = 1 + text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
    (start, Key { key, value: written(value.get_ref()), line: Some(line) })
}

/// A policy's text that has these keys.
pub(crate) fn text_of(keys: &[Key]) -> String {
    let mut text = String::new();
    let mut current = "";
    for Key { key, value, .. } in keys {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        if section != current {
            let _ = writeln!(text, "[{section}]");
            current = section;
        }
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}

/// The elements of a value that is a list; none for any other.
pub(crate) fn elements(value: &str) -> Option<Vec<String>> {
    let parsed = DeValue::parse(value).ok()?;
    let list = parsed.get_ref().as_array()?;
    Some(list.iter().map(|element| written(element.get_ref())).collect())
}

/// A value as TOML, on one line.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => serde_json::Value::String(text.to_string()).to_string(),
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| number.as_str().to_owned(), |number| number.to_string()),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        DeValue::Array(list) => {
            let elements: Vec<String> = list.iter().map(|element| written(element.get_ref())).collect();
            format!("[{}]", elements.join(", "))
        }
        DeValue::Table(table) => {
            let mut fields: Vec<(usize, String)> = table
                .iter()
                .map(|(name, value)| {
                    (place(name.get_ref()), format!("{} = {}", name.get_ref(), written(value.get_ref())))
                })
                .collect();
            fields.sort();
            let fields: Vec<String> = fields.into_iter().map(|(_, field)| field).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}

/// The fields of a rung go in the order in which the policy that ships writes them; others after them.
fn place(field: &str) -> usize {
    let known = ["worlds", "arm", "evidence"];
    known.iter().position(|name| *name == field).unwrap_or(known.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankwise_protocol::policy::{KEYS, Policy, SHIPPED};

    #[test]
    fn the_shipped_policy_comes_back_from_its_keys() {
        let keys = read(SHIPPED, &[]);
        assert_eq!(keys.iter().map(|key| key.key.as_str()).collect::<Vec<_>>(), KEYS);
        assert_eq!(Policy::parse("keys", &text_of(&keys), &[]).unwrap(), Policy::shipped());
        for key in &keys {
            assert_eq!(key.line, Policy::line_of(SHIPPED, &key.key), "{}", key.key);
        }
    }

    #[test]
    fn a_value_has_one_form_however_it_is_written() {
        let one = "[a]\nb = 0x10\nc = [{ arm = 'x', worlds = \"2\" }]\n";
        let other = "[a]\n# a comment\nb = 1_6\nc = [\n  { worlds = \"2\", arm = \"x\" },\n]\n";
        let values = |text| read(text, &[]).into_iter().map(|key| key.value).collect::<Vec<_>>();
        assert_eq!(values(one), ["16", "[{ worlds = \"2\", arm = \"x\" }]"]);
        assert_eq!(values(one), values(other));
    }

    #[test]
    fn a_set_lies_over_the_text_bare_words_too() {
        let sets = [("a.b".to_owned(), "false".to_owned()), ("a.c".to_owned(), "WORD".to_owned())];
        let values: Vec<String> =
            read("[a]\nb = true\nc = \"x\"\n", &sets).into_iter().map(|key| key.value).collect();
        assert_eq!(values, ["false", "\"WORD\""]);
    }

    #[test]
    fn a_list_has_elements_and_a_number_has_none() {
        assert_eq!(elements("[1, 2]"), Some(vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!(elements("3"), None);
    }
}

//! Builds update and condition expressions of DynamoDB.

use std::collections::HashMap;

use aws_sdk_dynamodb::{
    error::BuildError,
    types::{
        AttributeValue, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem,
        Update,
    },
};

use super::attribute_value::Fields;

/// An update expression with its condition. Every name and value gets a placeholder, because DynamoDB reserves many words.
#[derive(Debug, Default)]
pub(crate) struct Expression {
    sets: Vec<String>,
    removes: Vec<String>,
    conditions: Vec<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Expression {
    /// Returns the placeholder of an attribute name.
    pub fn name(&mut self, name: &str) -> String {
        if let Some((alias, _)) = self.names.iter().find(|(_, known)| *known == name) {
            return alias.clone();
        }
        let alias = format!("#{}", self.names.len());
        self.names.insert(alias.clone(), name.to_owned());
        alias
    }

    /// Returns the placeholder of a value.
    pub fn value(&mut self, value: AttributeValue) -> String {
        let alias = format!(":{}", self.values.len());
        self.values.insert(alias.clone(), value);
        alias
    }

    /// Sets the attribute.
    pub fn set(&mut self, name: &str, value: AttributeValue) -> &mut Self {
        let (name, value) = (self.name(name), self.value(value));
        self.sets.push(format!("{name} = {value}"));
        self
    }

    /// Sets a field of the attribute, which is a map.
    pub fn set_within(&mut self, name: &str, field: &str, value: AttributeValue) -> &mut Self {
        let (name, field, value) = (self.name(name), self.name(field), self.value(value));
        self.sets.push(format!("{name}.{field} = {value}"));
        self
    }

    /// Adds to the number in the attribute.
    pub fn add(&mut self, name: &str, amount: AttributeValue) -> &mut Self {
        let (name, amount) = (self.name(name), self.value(amount));
        self.sets.push(format!("{name} = {name} + {amount}"));
        self
    }

    /// Removes the attribute.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        let name = self.name(name);
        self.removes.push(name);
        self
    }

    /// Requires that the item exists.
    pub fn if_exists(&mut self) -> &mut Self {
        self.if_has("PK")
    }

    /// Requires that the item does not exist.
    pub fn if_absent(&mut self) -> &mut Self {
        self.unless_has("PK")
    }

    /// Requires this attribute.
    pub fn if_has(&mut self, name: &str) -> &mut Self {
        let name = self.name(name);
        self.condition(format!("attribute_exists({name})"))
    }

    /// Requires that this attribute does not exist.
    pub fn unless_has(&mut self, name: &str) -> &mut Self {
        let name = self.name(name);
        self.condition(format!("attribute_not_exists({name})"))
    }

    /// Requires that the attribute is a number.
    pub fn if_number(&mut self, name: &str) -> &mut Self {
        let (name, kind) = (self.name(name), self.value(AttributeValue::S("N".into())));
        self.condition(format!("attribute_type({name}, {kind})"))
    }

    /// Requires this value of the attribute.
    pub fn if_equal(&mut self, name: &str, value: AttributeValue) -> &mut Self {
        let (name, value) = (self.name(name), self.value(value));
        self.condition(format!("{name} = {value}"))
    }

    /// Requires this value of the attribute, if it exists.
    pub fn if_equal_or_absent(&mut self, name: &str, value: AttributeValue) -> &mut Self {
        let (name, value) = (self.name(name), self.value(value));
        self.condition(format!("(attribute_not_exists({name}) OR {name} = {value})"))
    }

    /// Requires at most this value of the attribute, if it exists.
    pub fn if_at_most(&mut self, name: &str, value: AttributeValue) -> &mut Self {
        let (name, value) = (self.name(name), self.value(value));
        self.condition(format!("(attribute_not_exists({name}) OR {name} <= {value})"))
    }

    fn condition(&mut self, condition: String) -> &mut Self {
        if !self.conditions.contains(&condition) {
            self.conditions.push(condition);
        }
        self
    }

    /// Returns whether it changes an attribute.
    pub fn has_changes(&self) -> bool {
        !self.sets.is_empty() || !self.removes.is_empty()
    }

    /// Returns whether it has a condition.
    pub fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Updates this item, or only checks the condition if there is nothing to change.
    pub fn on(self, table: &str, key: Fields) -> Result<TransactWriteItem, BuildError> {
        if self.has_changes() { self.update(table, key) } else { self.check(table, key) }
    }

    fn update(self, table: &str, key: Fields) -> Result<TransactWriteItem, BuildError> {
        let clause = |keyword: &str, parts: &[String]| match parts {
            [] => String::new(),
            parts => format!("{keyword} {} ", parts.join(", ")),
        };
        let update = format!("{}{}", clause("SET", &self.sets), clause("REMOVE", &self.removes));
        let update = Update::builder()
            .table_name(table)
            .set_key(Some(key))
            .update_expression(update.trim_end())
            .set_condition_expression(self.conditions())
            .set_expression_attribute_names(self.aliases())
            .set_expression_attribute_values((!self.values.is_empty()).then_some(self.values))
            .return_values_on_condition_check_failure(AllOld)
            .build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    fn check(self, table: &str, key: Fields) -> Result<TransactWriteItem, BuildError> {
        let check = ConditionCheck::builder()
            .table_name(table)
            .set_key(Some(key))
            .set_condition_expression(self.conditions())
            .set_expression_attribute_names(self.aliases())
            .set_expression_attribute_values((!self.values.is_empty()).then_some(self.values))
            .return_values_on_condition_check_failure(AllOld)
            .build()?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    /// Deletes this item.
    pub fn delete(self, table: &str, key: Fields) -> Result<TransactWriteItem, BuildError> {
        let delete = Delete::builder()
            .table_name(table)
            .set_key(Some(key))
            .set_condition_expression(self.conditions())
            .set_expression_attribute_names(self.aliases())
            .set_expression_attribute_values((!self.values.is_empty()).then_some(self.values))
            .return_values_on_condition_check_failure(AllOld)
            .build()?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// Replaces this item.
    pub fn put(self, table: &str, row: Fields) -> Result<TransactWriteItem, BuildError> {
        let put = Put::builder()
            .table_name(table)
            .set_item(Some(row))
            .set_condition_expression(self.conditions())
            .set_expression_attribute_names(self.aliases())
            .set_expression_attribute_values((!self.values.is_empty()).then_some(self.values))
            .return_values_on_condition_check_failure(AllOld)
            .build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    fn conditions(&self) -> Option<String> {
        self.is_conditional().then(|| self.conditions.join(" AND "))
    }

    fn aliases(&self) -> Option<HashMap<String, String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }
}

//! The resource itself and its transforms.

use ferrvault_api::FerrVaultSecret;
use serde_json::json;

use super::{Case, change, spec};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, breaks, ready, says, heals| Case { name, breaks, ready, says, heals };
    let no = |reason| ("False", reason);
    vec![
        case(
            "the_target_type_grants_rights",
            spec!({"target": {"type": "kubernetes.io/service-account-token"}}),
            no("InvalidSpec"),
            &["spec.target.type kubernetes.io/service-account-token is refused"],
            spec!({"target": {"type": null}}),
        ),
        case(
            "the_target_type_is_another_than_before",
            spec!({"target": {"type": "example.com/other"}}),
            no("InvalidSpec"),
            &["does not let a type change", "set spec.target.type to Opaque"],
            spec!({"target": {"type": "Opaque"}}),
        ),
        case(
            "the_target_has_an_impossible_name",
            spec!({"target": {"name": "Not A Name"}}),
            no("InvalidSpec"),
            &["is no name for a Secret", "lower-case letters"],
            spec!({"target": {"name": "db"}}),
        ),
        case(
            "a_selector_name_is_empty",
            spec!({"selector": {"names": ["A", ""]}}),
            no("InvalidSpec"),
            &["spec.selector.names[1] is empty", "remove the entry"],
            spec!({"selector": {"names": ["A"]}}),
        ),
        case(
            "a_value_is_no_base64",
            spec!({"transforms": [{"type": "base64Decode", "keys": ["A"]}]}),
            no("TransformError"),
            &["transforms[0] (base64Decode)", r#"key "A""#, "neither standard nor URL-safe base64"],
            spec!({"transforms": null}),
        ),
        case(
            "a_value_is_no_json",
            spec!({"transforms": [{"type": "prefix", "value": "X_"}, {"type": "jsonExpand", "key": "X_A"}]}),
            no("TransformError"),
            &["transforms[1] (jsonExpand)", r#"key "X_A""#, "is not JSON"],
            spec!({"transforms": null}),
        ),
        case(
            "a_value_is_json_and_no_object",
            change!(|scene| {
                scene.set(&[("J", "[1, 2, 3, 4, 5]")]).await;
                scene
                    .edit::<FerrVaultSecret>(
                        "shop",
                        json!({"spec": {
                    "selector": {"names": ["J"]}, "transforms": [{"type": "jsonExpand", "key": "J"}]}}),
                    )
                    .await
            }),
            no("TransformError"),
            &["transforms[0] (jsonExpand)", r#"key "J""#, "JSON but not an object"],
            spec!({"transforms": null, "selector": {"names": ["A", "B"]}}),
        ),
        case(
            "two_keys_become_one",
            spec!({"transforms": [{"type": "rename", "from": "A", "to": "B"}]}),
            no("TransformError"),
            &["transforms[0] (rename)", "would be written twice; rename one of the two"],
            spec!({"transforms": null}),
        ),
    ]
}

// Written by `make api`; do not edit. docs/reference/stability.md explains it.
extension TransportPlugin {
    /// The Nigh that the code using this was built for.
    @_alwaysEmitIntoClient public static var _builtFor: StaticString { "427ee2dc25dfacec" }
}

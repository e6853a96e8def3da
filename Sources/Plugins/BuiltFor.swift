// Written by `make api`; do not edit. docs/reference/stability.md explains it.
extension TransportPlugin {
    /// The Nigh that the code using this was built for.
    @_alwaysEmitIntoClient public static var _builtFor: StaticString { "d5b8c37f095eddb8" }
}

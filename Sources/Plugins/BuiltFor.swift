// Written by `make api`, and by nobody else; docs/stability.md says what for.
extension TransportPlugin {
    /// Which Nigh whoever uses this is built for.
    @_alwaysEmitIntoClient public static var _builtFor: StaticString { "37c0d48978f8e225" }
}

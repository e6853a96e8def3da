extension IdentityUse: SessionLayer {
    /// Ends the use. Another session may have the identity's own key.
    package func sessionDidClose() { end() }
}

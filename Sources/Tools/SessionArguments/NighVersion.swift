import NighPlugins

/// The version of Nigh that a program is made of.
public enum NighVersion {
    /// The version, as in the file `VERSION`: `1.2.3`.
    public static let text = String(cString: nigh_plugin_nigh_version())
}

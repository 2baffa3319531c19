package remoting

// Language is the sender's programming language, as its ordinal in Java's LanguageCode. A server must answer with
// [Java]: a 3.1 client fails to decode a language that its enum does not have.
type Language byte

// The languages. Old peers know those up to Other, later ones up to HTTP.
const (
	Java Language = iota
	CPP
	DotNet
	Python
	Delphi
	Erlang
	Ruby
	Other
	HTTP
	Go
	PHP
	OMS
	Rust
	NodeJS
)

func languageNames() [14]string {
	return [...]string{
		"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
	}
}

// String is the name in the JSON header; an ordinal without a name is OTHER.
func (l Language) String() string {
	names := languageNames()
	if int(l) >= len(names) {
		l = Other
	}
	return names[l]
}

// parseLanguage is the inverse of String; an unknown name is Other.
func parseLanguage(name string) Language {
	for i, n := range languageNames() {
		if n == name {
			return Language(i)
		}
	}
	return Other
}

package remoting

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Names of the ext fields that carry a signature.
const (
	FieldAccessKey     = "AccessKey"
	FieldSignature     = "Signature"
	FieldSecurityToken = "SecurityToken"
)

// fieldUniqueKeyQuery is left out of what a server checks, since a client adds it after signing.
const fieldUniqueKeyQuery = "_UNIQUE_KEY_QUERY"

// ErrSignature is the class of what is wrong with the signature of a request.
var ErrSignature = errors.New("signature refused")

// Credentials sign requests as the ACL hook of the Java client does.
type Credentials struct {
	AccessKey, SecretKey string
	// SecurityToken is sent, and signed, if it is not empty.
	SecurityToken string
}

// Sign adds the access key and the signature to c. Nothing may change in fields or body after it.
func (k *Credentials) Sign(c *Command) {
	c.Fields.Set(FieldAccessKey, k.AccessKey)
	if k.SecurityToken != "" {
		c.Fields.Set(FieldSecurityToken, k.SecurityToken)
	}
	c.Fields.Delete(FieldSignature)
	c.Fields = append(c.Fields, Field{FieldSignature, Signature(c, k.SecretKey)})
}

// Signature computes the signature of c: Base64 of HMAC-SHA1 over the values of all ext fields in the order of their
// names, without the signature itself, and then the body.
func Signature(c *Command, secretKey string) string {
	return base64.StdEncoding.EncodeToString(digest(c, secretKey))
}

// digest is the signature's 20 bytes.
func digest(c *Command, secretKey string) []byte {
	fields := make(Fields, 0, len(c.Fields))
	for _, f := range c.Fields {
		if f.Name == FieldSignature || f.Name == fieldUniqueKeyQuery {
			continue
		}
		fields = append(fields, f)
	}
	slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	h := hmac.New(sha1.New, []byte(secretKey))
	for i, f := range fields {
		if i+1 == len(fields) || fields[i+1].Name != f.Name { // of two the last, as in Java's map
			_, _ = io.WriteString(h, f.Value)
		}
	}
	h.Write(c.Body)
	return h.Sum(nil)
}

// Verify checks the signature of c as it was received. secretOf finds the secret key of an access key. Errors match
// [ErrSignature]; their text never holds a key.
func Verify(c *Command, secretOf func(accessKey string) (secretKey string, ok bool)) error {
	accessKey, ok := c.Fields.Lookup(FieldAccessKey)
	if !ok {
		return fmt.Errorf("%w: no access key", ErrSignature)
	}
	secretKey, ok := secretOf(accessKey)
	if !ok {
		return fmt.Errorf("%w: no account for access key %q", ErrSignature, accessKey)
	}
	sent, err := base64.StdEncoding.DecodeString(c.Fields.Get(FieldSignature))
	if err != nil || !hmac.Equal(sent, digest(c, secretKey)) {
		return fmt.Errorf("%w: the signature of access key %q does not fit the request", ErrSignature, accessKey)
	}
	return nil
}
